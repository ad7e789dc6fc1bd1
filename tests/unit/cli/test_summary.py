"""A run's section of a job summary, parsed as GitHub's dialect of Markdown."""

from markdown_it import MarkdownIt

from cli.evidence import Evidence
from cli.notes import exact_notes
from cli.summary import failed_section, section
from pipeline.errors import UnmeasuredError
from pipeline.types import Verdict
from pipeline.verdict.gate import Finding, Rule
from tests.unit.cli.finished import cancelled, compared, everything, finished

PARSER = MarkdownIt("commonmark").enable("table")


def rows(markdown: str) -> list[list[str]]:
    """Return the cells of all tables' rows."""
    found: list[list[str]] = []
    for token, after in zip(*(PARSER.parse(markdown)[n:] for n in (0, 1)), strict=False):
        if token.type == "tr_open":
            found.append([])
        if token.type in {"th_open", "td_open"}:
            found[-1].append(after.content)
    return found


def headings(markdown: str) -> list[str]:
    tokens = PARSER.parse(markdown)
    return [tokens[n + 1].content for n, each in enumerate(tokens) if each.type == "heading_open"]


def items(markdown: str) -> list[str]:
    tokens = PARSER.parse(markdown)
    inside = [n for n, each in enumerate(tokens) if each.type == "list_item_open"]
    return [tokens[n + 2].content for n in inside]


def test_a_section_holds_all_that_a_reviewer_asks() -> None:
    text = section(everything())

    assert headings(text) == [
        "faq / vector: regressed (index only)", "Against run 11", "Worst lost questions",
    ]  # fmt: skip
    table = rows(text)
    assert ["threshold", "**regressed**", "recall@5 fell, 100 % sure"] in table
    assert ["blind_spot", "note", "cannot see drops under 3 points"] in table
    assert ["metric", "run 11", "run 12", "difference", "95 % interval", "p"] in table
    assert ["recall@5", "0.8750", "0.7500", "-0.1250", "-0.250 +0.000", "<.001"] in table
    assert ["exact recall@5", "0.9500", "0.9000", "-0.0500"] in table
    assert ["index loss (exact less served recall)", "0.0750", "0.1500", "+0.0750"] in table
    drops = [row for row in table if row[1:2] == ["recall@5"]]
    assert drops == [
        ["further", "recall@5", "-0.5000", "2"], ["down|left", "recall@5", "-0.2500", "4"],
    ]  # fmt: skip
    assert items(text) == [
        *exact_notes(everything().found.run),
        "2 questions got no result at all (scored 0)",
        "compared to run 11: 8 shared, 1 new, 2 gone; hits lost 3, won 1",
        "corpus since then: vectors changed",
        r"Why \*me\*? (1 -> -)",
        "And? (1 -> 7)",
    ]
    (fence,) = [token for token in PARSER.parse(text) if token.type == "fence"]
    assert fence.content.splitlines() == [
        "recallwatch eval --set faq --strategy vector -k 5 --level chunk",
        "recallwatch runs show 12 --lost --failures",
    ]


def test_a_first_run_shows_its_own_metrics() -> None:
    first = Finding(rule=Rule.FIRST, verdict=Verdict.BASELINE, text="first measured run")

    text = section(finished(first, verdict=Verdict.BASELINE))

    assert headings(text) == ["faq / vector: baseline"]
    assert rows(text)[2:] == [["metric", "run 12"], ["recall@5", "0.7500"]]


def test_the_baseline_has_a_part_of_its_own() -> None:
    both = finished(
        comparison=compared(), compared_to=11, baseline_comparison=compared(), baseline_run=4
    )

    assert headings(section(both))[1:] == ["Against run 11", "Against the baseline, run 4"]


def test_a_run_that_measured_nothing_still_says_why() -> None:
    failed = Finding(rule=Rule.MAX_FAILED, verdict=Verdict.UNMEASURED, text="all failed")

    text = section(finished(failed, verdict=Verdict.UNMEASURED, metrics=None, n_scored=None))

    assert rows(text) == [
        ["rule", "verdict", "what it says"], ["max_failed", "**unmeasured**", "all failed"],
    ]  # fmt: skip


def test_a_warning_is_called_one() -> None:
    blind = Finding(
        rule=Rule.BLIND_SPOT, verdict=Verdict.OK, text="blind", counts=False, warning=True
    )

    assert rows(section(finished(blind, verdict=Verdict.OK)))[1][1] == "warning"


def test_names_of_strangers_cannot_add_to_the_page() -> None:
    evidence = finished()
    evidence.found.version.set_name = "# x\n\n# y ```\n|a|"

    text = section(Evidence(evidence.found))

    assert len(headings(text)) == 1
    assert len([token for token in PARSER.parse(text) if token.type == "fence"]) == 1


def test_an_evaluation_without_a_verdict_says_why() -> None:
    assert failed_section(UnmeasuredError("not *finished*;\nrun 4 waits")) == (
        "## recallwatch: no verdict\n\nnot \\*finished\\*;\n\nrun 4 waits\n\n"
    )


def test_a_cancelled_run_is_headed_so_and_says_who_did_it() -> None:
    text = section(cancelled())

    assert headings(text) == ["faq / vector: cancelled"]
    assert ["cancelled", "**unmeasured**", "cancelled by ann"] in rows(text)


def test_a_run_that_mixes_sources_shows_the_means_of_each() -> None:
    group = {"scored": 4, "failed": 0, "ineligible": 0, "metrics": {"hit@5": 0.5, "recall@5": 0.25}}
    other = {"scored": 0, "failed": 0, "ineligible": 5, "metrics": {}}
    text = section(finished(by_source={"manual": group, "log": other}))
    assert [row for row in rows(text) if len(row) == 4] == [
        ["source", "scored", "hit@5", "recall@5"],
        ["log", "0", "-", "-"],
        ["manual", "4", "0.5000", "0.2500"],
    ]


def test_a_run_of_one_source_has_no_table_of_sources() -> None:
    group = {"scored": 4, "failed": 0, "ineligible": 0, "metrics": {"recall@5": 0.25}}
    assert not [row for row in rows(section(finished(by_source={"log": group}))) if "source" in row]
