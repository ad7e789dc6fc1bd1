"""Judgments and rankings laid out as matrices: worked by hand."""

import numpy as np

from pipeline.scoring.layout import lay_out

NONE = float("nan")


def test_each_question_has_its_row_and_each_rank_its_column() -> None:
    table = lay_out(
        [{"a": 2, "b": -1, "c": 1}, {"d": 3, "e": 1, "f": 2, "g": 1}],
        [["x", "a", "a"], ["d"]],
        k=3,
        threshold=2,
    )
    np.testing.assert_array_equal(table.grades, [[NONE, 2, 2], [3, NONE, NONE]])
    np.testing.assert_array_equal(table.repeated, [[False, False, True], [False, False, False]])
    np.testing.assert_array_equal(table.ideal, [[2, 1, 0], [3, 2, 1]])
    np.testing.assert_array_equal(table.returned, [3, 1])
    np.testing.assert_array_equal(table.relevant, [1, 2])


def test_a_key_that_comes_back_three_times_is_repeated_twice() -> None:
    table = lay_out([{"a": 1}], [["a", "b", "a", "c", "a"]], k=6, threshold=1)
    assert table.repeated.tolist() == [[False, False, True, False, True, False]]
    assert table.gains.tolist() == [[1, 0, 0, 0, 0, 0]]


def test_no_questions_give_tables_without_rows() -> None:
    table = lay_out([], [], k=4, threshold=1)
    assert table.grades.shape == table.ideal.shape == table.repeated.shape == (0, 4)
