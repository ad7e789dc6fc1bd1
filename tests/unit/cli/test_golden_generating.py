from pathlib import Path

import click
import pytest

from cli.context import Context
from cli.golden import generating
from cli.golden.generating import CategoryMix
from cli.golden.generation_report import next_steps
from db.generation_figures import Figures
from db.generations import Counts
from db.models import Generation
from pipeline.errors import SettingsError


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


def steps(
    status: str, requests: dict[str, int], candidates: dict[str, int], *, batches: bool = False
) -> list[str]:
    found = Generation(
        id=7, set_name="faq", status=status, settings={"activate": False}, message_batches=batches
    )
    return list(next_steps(found, Figures(Counts(requests, candidates), 0.0, 0, 0, {}, {}, {})))


REVIEW = "2 proposed; see: recallwatch golden review --set faq"
RESUME = "recallwatch golden generations resume 7"


def test_what_passed_is_reviewed_and_where_nothing_did_is_looked_into() -> None:
    assert steps("completed", {"answered": 2}, {"kept": 2}) == [REVIEW]
    (look,) = steps("completed", {"answered": 2}, {"rejected": 2})
    assert "nothing was kept" in look


def test_what_was_not_sent_is_taken_up_again_whatever_was_kept() -> None:
    sent = f"to send what was not sent, and filter what was not filtered: {RESUME}"

    assert steps("failed", {"failed": 2}, {}) == [sent]
    assert steps("cancelled", {"pending": 1, "answered": 2}, {"kept": 2}) == [REVIEW, sent]
    assert steps("cancelled", {"answered": 2}, {"drafted": 2}) == [sent]
    assert steps("running", {"pending": 1}, {}) == []


def test_what_may_have_been_paid_for_is_sent_again_only_by_an_order_that_says_so() -> None:
    (again,) = steps("failed", {"unknown": 2}, {})
    assert f"perhaps pay twice: {RESUME} --ask-again" in again

    (look,) = steps("failed", {"unknown": 2}, {}, batches=True)
    assert f"look for answers in message batches: {RESUME};" in look
    assert "--ask-again" in look


class Reached(Exception):  # noqa: N818 - no error
    """The servers are about to be opened."""


@pytest.fixture
def keyless(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Have commands end where they open the servers, in a place without a key."""

    def reached(_: object) -> None:
        raise Reached

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setattr(generating, "open_servers", reached)


@pytest.mark.usefixtures("keyless")
@pytest.mark.parametrize(
    "options",
    [["--no-wait"], ["--no-start"], ["--dry-run"], ["--message-batches"]],
)
def test_no_key_is_asked_for_where_no_worker_of_this_command_sends_anything(
    options: list[str],
) -> None:
    with pytest.raises(Reached):
        generating.generate.main(options, obj=Context(), standalone_mode=False)


@pytest.mark.usefixtures("keyless")
@pytest.mark.parametrize("options", [[], ["--message-batches", "--wait"]])
def test_a_key_is_asked_for_before_workers_are_started(options: list[str]) -> None:
    with pytest.raises(SettingsError, match="ANTHROPIC_API_KEY"):
        generating.generate.main(options, obj=Context(), standalone_mode=False)
