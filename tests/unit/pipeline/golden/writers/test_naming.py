"""Ids of questions: of their owner, or free numbers."""

from hypothesis import given
from hypothesis import strategies as st

from pipeline.golden.writers.naming import name_of


def test_a_question_goes_by_its_external_id_else_by_its_number() -> None:
    assert name_of(7, "q7") == "q7"
    assert name_of(7, None) == "7"


def test_a_number_that_is_anothers_external_id_gets_a_free_name() -> None:
    assert name_of(7, None, {"7"}) == "7_"
    assert name_of(7, None, {"7", "7_"}) == "7__"
    assert name_of(7, "7", {"7", "7_"}) == "7"


NUMBERED = st.builds("{}{}".format, st.integers(0, 3), st.sampled_from(["", "_", "__", "a"]))


@given(ids=st.lists(st.none() | NUMBERED, max_size=12))
def test_no_two_questions_have_one_name(ids: list[str | None]) -> None:
    each_once = [name for n, name in enumerate(ids) if name is None or name not in ids[:n]]
    taken = {name for name in each_once if name is not None}
    names = [name_of(number, name, taken) for number, name in enumerate(each_once)]
    assert len(set(names)) == len(names)
