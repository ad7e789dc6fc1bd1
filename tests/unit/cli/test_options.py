import click
import pytest
from click.testing import CliRunner

from cli.options import Number, is_waited_for, waiting


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "-1", "much"])
def test_an_amount_is_a_finite_number_of_the_range(text: str) -> None:
    with pytest.raises(click.BadParameter):
        Number(0).convert(text, None, None)


def test_a_number_of_the_range_is_taken() -> None:
    assert Number(0).convert("0.5", None, None) == 0.5


@click.command()
@waiting(by_default=True)
@click.option("--message-batches", is_flag=True)
def ask(*, wait: bool, message_batches: bool, **_: object) -> None:
    click.echo(is_waited_for(wait, message_batches=message_batches))


@pytest.mark.parametrize(
    ("options", "waits"),
    [
        ([], True),
        (["--no-wait"], False),
        (["--message-batches"], False),
        (["--message-batches", "--wait"], True),
        (["--message-batches", "--no-wait"], False),
    ],
)
def test_message_batches_are_waited_for_only_where_that_is_said(
    options: list[str], *, waits: bool
) -> None:
    assert CliRunner().invoke(ask, options).output == f"{waits}\n"
