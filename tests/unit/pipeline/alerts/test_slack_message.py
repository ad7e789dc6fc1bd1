import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.alerts.message import Alert, LostQuestion
from pipeline.alerts.slack_message import fit, slack_message
from pipeline.verdict.compare import Change
from tests.unit.pipeline.alerts.examples import any_alert, any_text, regressed, stale

# Slack's reference: https://docs.slack.dev/reference/block-kit/blocks
LIMITS = {"header": 150, "section": 3000, "field": 2000, "context": 3000}
ENTITY = re.compile(r"&(amp|lt|gt);")


def texts(message: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each text object and what kind of place it stands in."""
    for block in message["blocks"]:
        if "text" in block:
            yield block["type"], block["text"]
        for place, key in (("field", "fields"), ("context", "elements")):
            for text in block.get(key, ()):
                yield place, text


def displayed(text: str) -> str:
    """Return what Slack shows for a text: it decodes these three entities and no other."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@settings(max_examples=100, deadline=None)
@given(any_alert)
def test_any_alert_is_valid_json_within_slacks_limits(alert: Alert) -> None:
    message = json.loads(json.dumps(slack_message(alert)).encode())

    assert 1 <= len(message["blocks"]) <= 50
    assert all(len(block.get("fields", ())) <= 10 for block in message["blocks"])
    for place, text in texts(message):
        assert 1 <= utf16_length(text["text"]) <= LIMITS[place]
        assert text["text"].encode()  # no halves of surrogate pairs
    assert 1 <= utf16_length(message["text"]) <= 3000


@settings(max_examples=100, deadline=None)
@given(any_alert)
def test_no_text_of_others_can_be_read_as_markup_or_a_mention(alert: Alert) -> None:
    message = slack_message(alert)

    for _, text in texts(message):
        raw = text["text"]
        if text["type"] == "mrkdwn" and (
            link := re.fullmatch(r"<https?://[^<>|\s]+\|([^<>|]*)>", raw)
        ):
            raw = link[1]
        assert "<" not in raw
        assert ">" not in raw
        assert "&" not in ENTITY.sub("", raw)
        assert not re.search(r"@(channel|here|everyone)", raw, re.IGNORECASE)
    assert not re.search(r"[<>]|@(channel|here|everyone)", message["text"], re.IGNORECASE)


@settings(max_examples=50, deadline=None)
@given(any_text)
def test_questions_stand_in_plain_text_in_which_slack_formats_nothing(question: str) -> None:
    canary = f"canary {question}"
    message = slack_message(regressed(lost_questions=(LostQuestion(canary, "d:0", 9),)))

    holding = [text for _, text in texts(message) if "canary" in text["text"]]

    assert [(text["type"], text["emoji"]) for text in holding] == [("plain_text", False)]


@given(any_text, st.integers(1, 200))
def test_a_text_that_fits_is_shown_whole_and_another_is_cut_between_entities(
    text: str, limit: int
) -> None:
    fitted = fit(text, limit)
    shown = displayed(fitted).replace("\u2060", "")
    whole = text.replace("\u2060", "")

    assert utf16_length(fitted) <= limit
    assert "&" not in ENTITY.sub("", fitted)
    assert shown == whole or (shown.endswith("…") and whole.startswith(shown[:-1]))


@pytest.mark.parametrize(
    ("text", "limit", "fitted"),
    [
        ("a & b", 9, "a &amp; b"),
        ("a & b", 8, "a &amp;…"),
        ("a & b", 7, "a …"),
        ("<b>", 100, "&lt;b&gt;"),
        ("ab\N{PARTY POPPER}", 4, "ab\N{PARTY POPPER}"),
        ("ab\N{PARTY POPPER}c", 4, "ab…"),
        ("@here", 100, "@\u2060here"),
        ("me@example.org", 100, "me@example.org"),
    ],
)
def test_fitting(text: str, limit: int, fitted: str) -> None:
    assert fit(text, limit) == fitted


def test_five_long_questions_are_all_shown() -> None:
    questions = tuple(LostQuestion(f"q{n} " + "long " * 200, "k" * 600, 9) for n in range(5))

    message = slack_message(regressed(lost_questions=questions))

    (block,) = [t["text"] for _, t in texts(message) if t["text"].startswith("Worst")]
    assert all(f"• q{n} long" in block for n in range(5))


def test_at_most_ten_metrics_are_shown() -> None:
    changes = tuple(Change(f"m{n}@5", current=0.1, previous=0.2) for n in range(12))

    message = slack_message(regressed(changes=changes))

    assert len(message["blocks"][1]["fields"]) == 10


def test_a_repeated_alert_is_one_line_and_the_link() -> None:
    message = slack_message(regressed(repeat=3))

    line, link = (text["text"] for _, text in texts(message))
    assert line == (
        "support / vector: still regressed, 3rd run; recall@5 0.9100 -&gt; 0.8800 (-0.0300);"
        " comes from the index"
    )
    assert link == "<https://recallwatch.example.org/runs/41|Open run 41>"


def test_a_command_with_backticks_cannot_leave_its_code_block() -> None:
    message = slack_message(regressed(reproduce="recallwatch eval --set '```*x*'"))

    (text,) = [t for _, t in texts(message) if t["text"].startswith("How to reproduce")]
    assert text["type"] == "plain_text"


def test_a_link_cannot_leave_its_brackets() -> None:
    message = slack_message(stale(link="https://example.org/a|b>c<!channel>?x=1&y=2"))

    assert message["blocks"][-1]["text"]["text"] == (
        "<https://example.org/a%7Cb%3Ec%3C!channel%3E?x=1&amp;y=2|Open>"
    )


def test_a_link_that_is_too_long_is_left_out() -> None:
    message = slack_message(stale(link="https://example.org/" + "a" * 3000))

    assert message["blocks"] == slack_message(stale())["blocks"]


def test_the_whole_message() -> None:
    assert slack_message(regressed()) == {
        "text": "support / vector: retrieval regressed; recall@5 0.9100 -&gt; 0.8800 (-0.0300);"
        " comes from the index",
        "blocks": [
            {"type": "header", "text": plain("support / vector: retrieval regressed")},
            {
                "type": "section",
                "fields": [
                    markup("*recall@5*\n0.9100 -&gt; 0.8800 (-0.0300)"),
                    markup("*ndcg@5*\n0.8125 -&gt; 0.8000 (-0.0125)"),
                ],
            },
            section(
                "Why:",
                "net 12 of 400 questions lost (15 lost, 3 won): more than noise, p = 0.0002",
            ),
            section(
                "Where it comes from:",
                "the index: texts and vectors find what they found, the index misses more of it",
                "exact search: recall@5 0.9410 -&gt; 0.9400 (-0.0010), over 400 questions",
                "index loss: 3.1 -&gt; 6.0 points of recall (+2.9)",
                "ef_search 160 would bring the index loss under a point"
                " (2.1 ms a question, now 0.8)",
            ),
            section(
                "How sure:",
                "with other questions of this kind recall@5: -0.0600 to -0.0010 (95 % interval,"
                " p = 0.013)",
                "cannot see drops under 3.0 points with 400 questions and this noise (80 % power)",
                "15 lost and 3 won of 400 shared questions",
                "410 of 420 questions scored",
            ),
            section(
                "By category:",
                "billing: recall@5 -0.2500 (40 questions)",
                "login: recall@5 -0.0500 (1 question)",
            ),
            section(
                "Worst lost questions:",
                "How do I cancel? (expected https://docs.example.org/cancel:3: no longer found)",
                "Where is my invoice? (expected invoices:0: now at rank 14)",
            ),
            section(
                "Changed meanwhile:",
                "chunks 1,000 -&gt; 1,200",
                "vectors changed",
                "strategy.ef_search 100 -&gt; 40",
            ),
            {
                "type": "section",
                "text": markup(
                    "*How to reproduce*\n"
                    "```recallwatch eval --set support --strategy vector -k 5 --level chunk```"
                ),
            },
            {
                "type": "context",
                "elements": [
                    plain(
                        "run 41 against run 38, k 5, chunk level, git 1a2b3c4d5e,"
                        " 2026-03-02 06:00 UTC"
                    )
                ],
            },
            {
                "type": "section",
                "text": markup("<https://recallwatch.example.org/runs/41|Open run 41>"),
            },
        ],
        "unfurl_links": False,
        "unfurl_media": False,
    }


def plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}


def markup(text: str) -> dict[str, Any]:
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def section(title: str, *lines: str) -> dict[str, Any]:
    return {"type": "section", "text": plain("\n".join([title, *(f"• {line}" for line in lines)]))}
