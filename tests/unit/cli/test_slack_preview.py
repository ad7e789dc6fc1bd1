import io

from rich.console import Console

from cli.slack_preview import preview
from pipeline.alerts.message import LostQuestion
from pipeline.alerts.slack_message import slack_message
from tests.unit.pipeline.alerts.examples import regressed


def shown(width: int = 200, **changes: object) -> list[str]:
    """Return the lines within the frame."""
    console = Console(file=io.StringIO(), width=width, color_system=None, markup=False)
    with console.capture() as captured:
        console.print(preview(slack_message(regressed(**changes)), "Slack"))
    first, *lines, last = captured.get().splitlines()
    assert first.startswith("╭─ Slack ─")
    assert last == "╰" + "─" * (width - 2) + "╯"
    assert {len(line) for line in lines} == {width}
    return [line.strip("│").strip() for line in lines]


def test_the_blocks_are_shown_in_their_order_without_their_markup() -> None:
    lines = shown()

    assert lines[:4] == [
        "support / vector: retrieval regressed",
        "recall@5 0.9100 -> 0.8800 (-0.0300)  ndcg@5 0.8125 -> 0.8000 (-0.0125)",
        "Why:",
        "• net 12 of 400 questions lost (15 lost, 3 won): more than noise, p = 0.0002",
    ]
    assert lines[-4:] == [
        "How to reproduce:",
        "recallwatch eval --set support --strategy vector -k 5 --level chunk",
        "run 41 against run 38, k 5, chunk level, git 1a2b3c4d5e, 2026-03-02 06:00 UTC",
        "Open run 41: https://recallwatch.example.org/runs/41",
    ]


def test_a_question_is_shown_as_slack_shows_it() -> None:
    question = LostQuestion("<!channel> & [red]@here[/red] *b*", "d:0", None)

    assert "• <!channel> & [red]@here[/red] *b* (expected d:0: no longer found)" in shown(
        lost_questions=(question,)
    )


def test_a_long_line_goes_on_under_its_own_beginning() -> None:
    lines = shown(width=40, reasons=("a " * 30,), findings=())

    start = lines.index("Why:")
    assert [line[:3] for line in lines[start + 1 : start + 3]] == ["• a", "a a"]


def test_a_repeat_is_a_line_and_the_link() -> None:
    line, link = shown(repeat=2)

    assert line.startswith("support / vector: still regressed, 2nd run; recall@5 0.9100 -> 0.8800")
    assert link == "Open run 41: https://recallwatch.example.org/runs/41"
