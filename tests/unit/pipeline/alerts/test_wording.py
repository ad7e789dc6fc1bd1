from dataclasses import replace

import pytest

from pipeline.alerts import wording
from pipeline.alerts.message import WiderSearch
from pipeline.types import AlertKind, Verdict
from pipeline.verdict.compare import Change, ExactComparison
from pipeline.verdict.gate import Cause, Finding, Rule
from tests.unit.pipeline.alerts.examples import BLIND, EXACT, NOISE, regressed, stale


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
        "support / vector: retrieval regressed; recall@5 0.9100 -> 0.8800 (-0.0300);"
        " comes from the index"
    )
    assert wording.summary(regressed(cause=None, changes=())) == (
        "support / vector: retrieval regressed"
    )


def test_what_is_no_quality_is_neither_shown_nor_the_worst() -> None:
    changes = (
        Change("duplicates@5", current=0.0, previous=0.5),
        Change("judged@5", current=0.1, previous=0.9),
        Change("map@5", current=0.5, previous=0.6),
    )

    assert wording.changes_at_k(regressed(changes=changes)) == [changes[2]]


def test_the_plain_rule_is_told_once_where_it_did_not_decide() -> None:
    plain = replace(BLIND, rule=Rule.THRESHOLD, figures={"max_drop": 0.02})
    fell = replace(plain, verdict=Verdict.REGRESSED, text="recall@5 fell")
    alert = regressed(findings=(NOISE, fell, replace(fell, text="ndcg@5 fell")))

    assert wording._beside(alert) == ["the plain rule (max_drop 0.02) says regressed"]
    assert wording._beside(regressed(findings=(replace(fell, counts=True),))) == []


def test_without_a_metric_at_k_all_changes_are_shown() -> None:
    change = Change("best_score", current=0.5, previous=0.4)

    assert wording.changes_at_k(regressed(changes=(change,))) == (change,)


INTERVAL = (
    "with other questions of this kind recall@5: -0.0600 to -0.0010 (95 % interval, p = 0.013)"
)


def test_every_paragraph_of_a_full_message() -> None:
    found = {
        paragraph.title: list(paragraph.lines) for paragraph in wording.paragraphs(regressed())
    }

    assert found == {
        "What changed": [
            "recall@5 0.9100 -> 0.8800 (-0.0300)",
            "ndcg@5 0.8125 -> 0.8000 (-0.0125)",
        ],
        "Why": ["net 12 of 400 questions lost (15 lost, 3 won): more than noise, p = 0.0002"],
        "Where it comes from": [
            "the index: texts and vectors find what they found, the index misses more of it",
            "exact search: recall@5 0.9410 -> 0.9400 (-0.0010), over 400 questions",
            "index loss: 3.1 -> 6.0 points of recall (+2.9)",
            "ef_search 160 would bring the index loss under a point (2.1 ms a question, now 0.8)",
        ],
        "How sure": [
            INTERVAL,
            "cannot see drops under 3.0 points with 400 questions and this noise (80 % power)",
            "15 lost and 3 won of 400 shared questions",
            "410 of 420 questions scored",
        ],
        "By category": [
            "billing: recall@5 -0.2500 (40 questions)",
            "login: recall@5 -0.0500 (1 question)",
        ],
        "Worst lost questions": [
            "How do I cancel? (expected https://docs.example.org/cancel:3: no longer found)",
            "Where is my invoice? (expected invoices:0: now at rank 14)",
        ],
        "Changed meanwhile": [
            "chunks 1,000 -> 1,200",
            "vectors changed",
            "strategy.ef_search 100 -> 40",
        ],
    }


def test_how_sure_is_said_of_the_metric_at_k_that_fell_most() -> None:
    changes = (
        Change("recall@5", current=0.9, previous=0.9, interval=(0, 0), p=1.0),
        Change("ndcg@5", current=0.5, previous=0.6, interval=(-0.2, 0.0), p=1e-30),
    )

    (said,) = wording._statistics(regressed(changes=changes))

    assert said == (
        "with other questions of this kind ndcg@5: -0.2000 to +0.0000 (95 % interval, p < 0.0001)"
    )


@pytest.mark.parametrize(
    ("cause", "exact", "words"),
    [
        (Cause.CORPUS, EXACT, "texts or vectors: exact search finds less too"),
        (Cause.CORPUS, None, "texts or vectors: this search uses no index that could miss them"),
        (Cause.BOTH, EXACT, "both: exact search finds less, and the index misses more of what"),
    ],
)
def test_the_cause_is_said_in_plain_words(
    cause: Cause, exact: ExactComparison | None, words: str
) -> None:
    first = wording._origin(regressed(cause=cause, exact=exact))[0]

    assert first.startswith(words)


def test_what_exact_search_found_is_said_without_a_cause_too() -> None:
    alert = regressed(cause=None, ef_search=None)

    assert [line.partition(":")[0] for line in wording._origin(alert)] == [
        "exact search",
        "index loss",
    ]
    assert wording._origin(regressed(cause=None, ef_search=None, exact=None)) == []


def test_a_wider_search_that_is_not_enough_is_no_advice() -> None:
    search = WiderSearch(now=40, now_ms=0.84, wider=1000, wider_ms=9.96, loss=0.0123)

    assert wording._origin(regressed(ef_search=search))[-1] == (
        "ef_search 1000 still loses 1.2 points (10.0 ms a question, now 0.8): rebuild the index"
        " with a larger m or ef_construction"
    )


def test_a_run_that_was_not_compared_says_why_and_how_much_of_it_there_is() -> None:
    failed = Finding(rule=Rule.MAX_FAILED, verdict=Verdict.UNMEASURED, text="9 of 10 failed")
    alert = regressed(
        kind=AlertKind.UNMEASURED,
        verdict=Verdict.UNMEASURED,
        findings=(failed,),
        **dict.fromkeys(("cause", "exact", "ef_search", "shared")),
        **dict.fromkeys(("changes", "categories", "lost_questions", "corpus", "setup"), ()),
    )

    (why,) = wording.paragraphs(alert)

    assert (why.title, list(why.lines)) == (
        "Why",
        ["9 of 10 failed", "410 of 420 questions scored"],
    )


def test_what_no_rule_is_known_of_says_its_reasons() -> None:
    why = wording.paragraphs(regressed(findings=(), reasons=("not finished by its deadline",)))[1]

    assert (why.title, list(why.lines)) == ("Why", ["not finished by its deadline"])


def test_a_stale_sets_command_shows_which_keys_are_gone() -> None:
    assert wording.command_title(stale()) == "To see which"
    assert wording.command_title(regressed()) == "How to reproduce"


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
