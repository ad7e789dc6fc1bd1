import pytest

from pipeline.alerts import wording
from pipeline.types import AlertKind
from pipeline.verdict.compare import Change
from tests.unit.pipeline.alerts.examples import regressed, stale


@pytest.mark.parametrize(
    ("number", "words"),
    [
        *[(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th")],
        *[(21, "21st"), (22, "22nd"), (101, "101st"), (111, "111th"), (113, "113th")],
    ],
)
def test_ordinals(number: int, words: str) -> None:
    assert wording.ordinal(number) == words


@pytest.mark.parametrize(
    ("kind", "repeat", "words"),
    [
        (AlertKind.REGRESSED, 1, "support / vector: retrieval regressed"),
        (AlertKind.REGRESSED, 3, "support / vector: still regressed, 3rd run"),
        (AlertKind.UNMEASURED, 1, "support / vector: retrieval could not be measured"),
        (AlertKind.UNMEASURED, 2, "support / vector: still unmeasured, 2nd run"),
        (AlertKind.RECOVERED, 1, "support / vector: retrieval recovered"),
    ],
)
def test_the_headline_says_what_happened_to_what(kind: AlertKind, repeat: int, words: str) -> None:
    assert wording.headline(regressed(kind=kind, repeat=repeat)) == words


def test_a_golden_set_has_no_strategy_in_its_headline() -> None:
    assert wording.headline(stale()) == "support: golden set is stale"
    assert wording.summary(stale(repeat=2)) == "support: golden set still stale, 2nd run"


def test_the_summary_names_the_worst_change_at_k() -> None:
    # recall@1 fell further, but the run is about k = 5.
    assert wording.summary(regressed()) == (
        "support / vector: retrieval regressed; recall@5 0.9100 -> 0.8800 (-0.0300)"
    )


def test_without_a_metric_at_k_all_changes_are_shown() -> None:
    change = Change("best_score", current=0.5, previous=0.4)

    assert wording.changes_at_k(regressed(changes=(change,))) == (change,)


def test_every_paragraph_of_a_full_message() -> None:
    found = {
        paragraph.title: list(paragraph.lines) for paragraph in wording.paragraphs(regressed())
    }

    assert found == {
        "What changed": [
            "recall@5 0.9100 -> 0.8800 (-0.0300)",
            "ndcg@5 0.8125 -> 0.8000 (-0.0125)",
        ],
        "How sure": [
            "recall@5 fell by more than its noise explains (12 net lost, 7 needed)",
            "recall@5: 95 % interval -0.0600 to -0.0010, p = 0.013",
            "15 lost and 3 won of 400 shared questions",
            "410 of 420 questions scored",
        ],
        "By category": ["billing: -0.2500 (40 questions)", "login: -0.0500 (1 question)"],
        "Worst lost questions": [
            "How do I cancel? (expected https://docs.example.org/cancel:3: no longer found)",
            "Where is my invoice? (expected invoices:0: now at rank 14)",
        ],
        "Corpus": ["chunks 1,000 -> 1,200", "vectors changed"],
    }


def test_how_sure_is_said_of_the_metric_at_k_that_fell_most() -> None:
    changes = (
        Change("recall@5", current=0.9, previous=0.9, interval=(0, 0), p=1.0),
        Change("ndcg@5", current=0.5, previous=0.6, interval=(-0.2, 0.0), p=1e-30),
    )

    (said,) = wording._statistics(regressed(changes=changes))

    assert said == "ndcg@5: 95 % interval -0.2000 to +0.0000, p = 1e-30"


def test_paragraphs_with_nothing_in_them_are_left_out() -> None:
    (only,) = wording.paragraphs(stale())

    assert only.title == "Why"
    assert list(only.lines) == ["12 of 340 expected keys are no longer in the corpus"]


def test_the_footer_says_which_runs_and_when() -> None:
    assert wording.footer(regressed()) == (
        "run 41 against run 38, k 5, chunk level, git 1a2b3c4d5e, 2026-03-02 06:00 UTC"
    )
    assert wording.footer(stale()) == "2026-03-02 06:00 UTC"


def test_a_line_is_one_clean_line_and_never_empty() -> None:
    assert wording.one_line("a\n\tb\x1b[0m  c\u202e") == "a b[0m c"
    assert wording.one_line("\x00 \n") == "(blank)"
