import click
import pytest

from cli.golden.generating import CategoryMix
from cli.golden.generation_report import next_step
from db.generation_figures import Figures
from db.generations import Counts
from db.models import Generation


def convert(text: str) -> object:
    return CategoryMix().convert(text, None, None)


def test_a_mix_is_read() -> None:
    assert convert("factual=3, procedural=1") == {"factual": 3, "procedural": 1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("funny=1", "no category 'funny'; there are factual, "),
        ("factual", "'factual': write NAME=WEIGHT"),
        ("factual=0", "from 1 to 100"),
        ("factual=101", "from 1 to 100"),
        ("factual=1,factual=2", "once"),
        ("factual=1.5", "write NAME=WEIGHT"),
        ("", "no category ''"),
    ],
)
def test_a_mix_that_is_none_is_refused(text: str, reason: str) -> None:
    with pytest.raises(click.BadParameter, match=reason):
        convert(text)


def step(status: str, requests: dict[str, int], candidates: dict[str, int]) -> str | None:
    found = Generation(id=7, set_name="faq", status=status, settings={"activate": False})
    return next_step(found, Figures(Counts(requests, candidates), 0.0, 0, 0, {}, {}))


def test_what_to_do_next_is_to_review_to_resume_or_to_look_why_nothing_was_kept() -> None:
    assert step("completed", {"answered": 2}, {"kept": 2}) == (
        "2 proposed; see: recallwatch golden review --set faq"
    )
    assert "generations resume 7" in str(step("failed", {"failed": 2}, {}))
    assert "nothing was kept" in str(step("completed", {"answered": 2}, {"rejected": 2}))
    assert step("cancelled", {"answered": 2}, {}) is None
