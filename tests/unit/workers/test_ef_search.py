import pytest

from workers.ef_search import ANY_KEY, ladder


@pytest.mark.parametrize(
    ("first", "rungs"),
    [
        (40, [40, 80, 160, 320, 640, 1000]),
        (1, [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1000]),
        (500, [500, 1000]),
        (999, [999, 1000]),
        (1000, [1000]),
    ],
)
def test_each_ef_search_tried_is_twice_the_last_up_to_the_largest_there_is(
    first: int, rungs: list[int]
) -> None:
    assert list(ladder(first)) == rungs


def test_any_key_is_live() -> None:
    assert "anything:0" in ANY_KEY
