"""What `golden remap --apply` says of the questions that it leaves as they are."""

import pytest

from cli.context import Context
from cli.golden.remapping import _say_written
from workers.remapping import Remapped


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (Remapped(3, [1], [], []), ""),
        (Remapped(3, [1], [7], []), "the same as another one: reject one of each (7)"),
        (Remapped(None, [], [], [4, 5]), "include split or changed, or edit by hand (4, 5)"),
        (Remapped(None, [], [], list(range(9))), "(0, 1, 2, 3, 4, ...)"),
    ],
)
def test_questions_that_stay_are_named_with_what_to_do(
    done: Remapped, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _say_written(Context(), done)

    warned = capsys.readouterr().err
    assert said in warned
    assert warned.count("warning: ") == bool(said)
