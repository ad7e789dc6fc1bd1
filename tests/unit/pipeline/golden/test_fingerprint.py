import hashlib
from dataclasses import fields, replace
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from pipeline.golden.fingerprint import content_hash, item_hash, text_hash, version_fingerprint
from pipeline.types import Kind, Question, Source
from tests.unit.pipeline.golden.strategies import patiently, questions

IN_CONTENT = {"text", "kind", "expected", "tenant", "language"}
IN_ITEM = IN_CONTENT | {"external_id", "category", "source", "must_pass"}
ALL_FIELDS = {field.name for field in fields(Question)}

KNOWN = Question(
    text='Onde está "ele"?',
    expected={"b:0": 1, "https://a.example/é:2": -1, "a:10": 3},
    kind=Kind.ANSWERABLE,
    category="factual",
    tenant=None,
    language="pt",
    source=Source.SYNTHETIC,
    must_pass=True,
    external_id="q-1",
    notes="not hashed",
)
KNOWN_CONTENT = (
    rb'["recallwatch-content-1","Onde est\u00e1 \"ele\"?","answerable",'
    rb'[["a:10",3],["b:0",1],["https://a.example/\u00e9:2",-1]],null,"pt"]'
)
KNOWN_CONTENT_HASH = hashlib.sha256(KNOWN_CONTENT).hexdigest()
KNOWN_ITEM = (
    b'["recallwatch-item-1","'
    + KNOWN_CONTENT_HASH.encode()
    + b'","q-1","factual","synthetic",true]'
)


def test_the_content_hash_is_the_sha_256_of_the_documented_serialisation() -> None:
    assert content_hash(KNOWN) == KNOWN_CONTENT_HASH


def test_the_item_hash_is_the_sha_256_of_the_documented_serialisation() -> None:
    assert item_hash(KNOWN) == hashlib.sha256(KNOWN_ITEM).hexdigest()


def test_the_version_fingerprint_is_the_sha_256_of_the_documented_serialisation() -> None:
    hashes = ["f" * 64, "0" * 63 + "3", "0" * 62 + "10"]
    total = "0" * 62 + "12"  # (2^256 - 1) + 3 + 16, less 2^256
    serialised = f'["recallwatch-version-1",3,"{total}"]'
    assert version_fingerprint(hashes) == hashlib.sha256(serialised.encode()).hexdigest()


@patiently
@given(one=questions(), other=questions())
def test_a_changed_field_changes_the_hashes_that_cover_it_and_no_other(
    one: Question, other: Question
) -> None:
    for name in ALL_FIELDS:
        changed = replace(one, **{name: getattr(other, name)})
        differs = getattr(one, name) != getattr(other, name)
        assert (content_hash(changed) != content_hash(one)) == (differs and name in IN_CONTENT)
        assert (item_hash(changed) != item_hash(one)) == (differs and name in IN_ITEM)


@patiently
@given(question=questions())
def test_the_order_of_the_expected_keys_does_not_count(question: Question) -> None:
    for judgments in permutations(question.expected.items()):
        reordered = replace(question, expected=dict(judgments))
        assert content_hash(reordered) == content_hash(question)
        assert item_hash(reordered) == item_hash(question)


ALIKE = [
    Question(text="a", expected={}, tenant="b"),
    Question(text="a", expected={}, language="b"),
    Question(text="a", expected={}, tenant="null"),
    Question(text="a", expected={}),
    Question(text='a","answerable', expected={}),
    Question(text="a\\", expected={}),
    Question(text="a ", expected={}),
    Question(text="A", expected={}),
    Question(text="\u00e9", expected={}),
    Question(text="e\u0301", expected={}),
    Question(text="\\u00e9", expected={}),
    Question(text="\ufeffa", expected={}),
    Question(text="a", expected={"b:1": 1}),
    Question(text="a", expected={"b:11": 1}),
    Question(text="a", expected={"b:1": 11}),
    Question(text="a", expected={"b:1": 1, "b:2": 1}),
    Question(text="a", expected={'b:1",1],["b:2': 1}),
    Question(text="a", expected={"b:1": -1}),
]


def test_questions_that_nearly_serialise_alike_have_different_content_hashes() -> None:
    assert len({content_hash(question) for question in ALIKE}) == len(ALIKE)


HASHES = st.lists(st.binary(min_size=32, max_size=32).map(bytes.hex), max_size=8)


@patiently
@given(hashes=HASHES, data=st.data())
def test_the_order_of_a_version_does_not_count(hashes: list[str], data: st.DataObject) -> None:
    other = data.draw(st.permutations(hashes))
    assert version_fingerprint(iter(other)) == version_fingerprint(hashes)


@patiently
@given(one=HASHES, other=HASHES)
def test_different_sets_are_different_versions(one: list[str], other: list[str]) -> None:
    same = sorted(one) == sorted(other)
    assert (version_fingerprint(one) == version_fingerprint(other)) == same


@patiently
@given(hashes=HASHES.filter(bool))
def test_repeats_count_in_a_version(hashes: list[str]) -> None:
    times = [version_fingerprint(hashes * count) for count in range(4)]
    assert len(set(times)) == 4


def test_a_hash_of_zero_still_counts() -> None:
    assert version_fingerprint(["0" * 64]) != version_fingerprint([])


def test_versions_that_differ_in_one_category_only_are_different() -> None:
    golden = [Question(text=f"Question {n}?", expected={f"a:{n}": 1}) for n in range(3)]
    relabelled = [*golden[:2], replace(golden[2], category="factual")]
    assert version_fingerprint(map(item_hash, golden)) != version_fingerprint(
        map(item_hash, relabelled)
    )
    assert [*map(content_hash, golden)] == [*map(content_hash, relabelled)]


def test_the_text_hash_is_the_sha_256_of_the_documented_serialisation() -> None:
    serialised = rb'["recallwatch-text-1","Onde est\u00e1?","acme"]'
    assert text_hash(" Onde\u200b  esta\u0301?\n", "acme") == hashlib.sha256(serialised).hexdigest()


def test_the_text_hash_tells_tenants_and_cases_apart() -> None:
    asked = [("US?", None), ("us?", None), ("US?", "None"), ("US?", "acme")]
    assert len({text_hash(*each) for each in asked}) == len(asked)
