"""Lists of keys in one cell."""

import pytest
from hypothesis import given

from pipeline.errors import InputError
from pipeline.golden.readers.expected_cells import expected_cell, expected_from
from pipeline.golden.readers.ids import Ids
from tests.unit.pipeline.golden.strategies import EXPECTED, patiently


@pytest.mark.parametrize(("cell", "expected"), [
    ("a:0", {"a:0": 1}),
    ("a:0, b:1", {"a:0": 1, "b:1": 1}),
    ("a:0;b:1;", {"a:0": 1, "b:1": 1}),
    ("a:0 | b:1", {"a:0": 1, "b:1": 1}),
    ("a:0\nb:1\r\n", {"a:0": 1, "b:1": 1}),
    ("a:0=2; b:1 = -1", {"a:0": 2, "b:1": -1}),
    ("smith, j.:0", {"smith, j.:0": 1}),
    ("smith, j.:0; lee, k.:1=3", {"smith, j.:0": 1, "lee, k.:1": 3}),
    ("https://a.example/b;c=1#d::e:12", {"https://a.example/b;c=1#d::e:12": 1}),
    ("0", {"0:0": 1}),
    ("9007199254740993", {"9007199254740993:0": 1}),
    ("guide.html; faq.html:2", {"guide.html:0": 1, "faq.html:2": 1}),
    ("guide.html;faq.html", {"guide.html:0": 1, "faq.html:0": 1}),
    ("guide.html; faq.html", {"guide.html:0": 1, "faq.html:0": 1}),
    ("my guide #2.pdf", {"my guide #2.pdf:0": 1}),
    ('["a:0", "b,c"]', {"a:0": 1, "b,c:0": 1}),
    ("[1, 2]", {"1:0": 1, "2:0": 1}),
    ('{"a:0": 2, "b:0": null}', {"a:0": 2, "b:0": None}),
    ('{"MED-10": 2, "https://a.example/?id=3": 1}',
     {"MED-10:0": 2, "https://a.example/?id=3:0": 1}),
    ("https://a.example/?id=3:0", {"https://a.example/?id=3:0": 1}),
    ("a:0 = 2", {"a:0": 2}),
    ("[draft] guide:0", {"[draft] guide:0": 1}),
    ("", {}),
    ("[]", {}),
])  # fmt: skip
def test_a_cell_says_which_keys_are_expected(cell: str, expected: dict[str, object]) -> None:
    assert expected_from(cell, Ids()) == expected


@pytest.mark.parametrize(("cell", "reason"), [
    ("guide.html, faq.html", "may be one id or several"),
    ("guide.html, faq.html:1, a:0", "may be one id or several"),
    ("a:0;guide.html", "may be one id or several"),
    ("a:0; a:0", "lists the key 'a:0' twice"),
    ("a; a:0", "lists the key 'a:0' twice"),
    ('{"a:0": 1, "a:0": 2}', "lists the key 'a:0' twice"),
    ("a:0=x", "the grade is 'x': an integer is needed"),
    ("a:0=1.5", "the grade is '1.5': an integer is needed"),
    ("MED-10=2; MED-11=1", "'MED-10=2', which may be an id, or ids and grades"),
    ("MED-10=2.0", "'MED-10=2.0', which may be an id, or ids and grades"),
    ("https://a.example/?id=3", "which may be an id, or ids and grades"),
    ("a:0 b:0", "'a:0 b:0', which may be an id, or ids and grades"),
    ("a:0=2 b:0=1", "'a:0=2 b:0=1', which may be an id, or ids and grades"),
    ("a:0 b", "'a:0 b', which may be an id, or ids and grades"),
    ("[true]", "a JSON list of something else than keys"),
    ('[{"key": "a:0"}]', "a JSON list of something else than keys"),
])  # fmt: skip
def test_a_cell_that_says_two_things_is_refused(cell: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        expected_from(cell, Ids())


@patiently
@given(expected=EXPECTED)
def test_what_is_written_into_a_cell_is_read_out_of_it(expected: dict[str, int]) -> None:
    assert list(expected_from(expected_cell(expected), Ids()).items()) == list(expected.items())


def test_a_cell_is_a_list_that_a_person_can_edit_where_it_can_be() -> None:
    assert expected_cell({"a, b:0": 1, "c:1": 2}) == "a, b:0; c:1=2"
    assert expected_cell({"a;b:0; c:1": 1}) == '{"a;b:0; c:1": 1}'
