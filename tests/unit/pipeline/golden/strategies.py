"""Questions as hypothesis draws them: any text a file can hold, awkward keys, every field."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from pipeline.types import Kind, Question, Source, make_key

# Examples with ten texts each take their time to draw on a machine that has other work.
patiently = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])

ANY_CHARACTER = st.characters(codec="utf-8", exclude_characters="\0")
AWKWARD = st.sampled_from(
    ["\ufeff", "\u200b", "\u200d", "\u2028", "\u0085", "\u00a0", "\r", "\n", " ", '"', "\\", ":"]
)
TEXT = st.text(ANY_CHARACTER | AWKWARD, max_size=12)
LETTER = st.characters(categories=["L", "N"])
VISIBLE_TEXT = st.builds("{}{}{}".format, TEXT, LETTER, TEXT)
URLS = st.sampled_from(["https://a.example:8080/b?c=d:e#f", "urn:isbn:0451450523", "x::y", "C:\\a"])
KEYS = st.builds(make_key, VISIBLE_TEXT | URLS, st.integers(0, 10**18 - 1))
GRADES = st.integers(-(2**31) + 1, 2**31 - 1) | st.sampled_from([-1, 0, 1, 2])
EXPECTED = st.dictionaries(KEYS, GRADES, max_size=3)


@st.composite
def questions(draw: st.DrawFn, *, evidence: bool = False) -> Question:
    """Draw a question that a golden set may hold: its kind follows from its grades.

    With `evidence`, some of its keys have the text that they were judged on.
    """
    expected = draw(EXPECTED)
    relevant = any(grade >= 1 for grade in expected.values())
    label = st.none() | VISIBLE_TEXT
    return Question(
        text=draw(VISIBLE_TEXT),
        expected=expected,
        kind=Kind.ANSWERABLE if relevant else Kind.UNANSWERABLE,
        category=draw(label),
        tenant=draw(label),
        language=draw(label),
        source=draw(st.sampled_from(Source)),
        must_pass=draw(st.booleans()),
        external_id=draw(label),
        notes=draw(st.none() | TEXT),
        evidence={key: draw(VISIBLE_TEXT) for key in expected if evidence and draw(st.booleans())},
    )
