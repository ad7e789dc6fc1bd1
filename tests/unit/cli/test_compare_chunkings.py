import click
import pytest

from cli.compare_chunkings import Numbers


def test_numbers_are_taken_in_their_order_each_once() -> None:
    assert Numbers(1).convert("400, 200,400", None, None) == [400, 200]


@pytest.mark.parametrize("text", ["", "a", "200,", "-1", "1.5", "1" * 20])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="write whole numbers, as 200,400"):
        Numbers(0).convert(text, None, None)


def test_a_number_below_the_least_is_refused() -> None:
    with pytest.raises(click.BadParameter, match="0 is less than 1"):
        Numbers(1).convert("100,0", None, None)
