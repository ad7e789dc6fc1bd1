"""BEIR folders, and tasks of MTEB, which are stored alike."""

import gzip
import json
from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.golden.formats import ReadOptions, Refused, reader
from pipeline.types import Kind, Question, Source
from tests.unit.pipeline.golden.readers.conftest import Found, found_in

HEADER = "query-id\tcorpus-id\tscore\n"
QUERIES = '{"_id": "q1", "text": "Who?", "metadata": {"url": "x"}}\n{"_id": "q2", "text": "Why?"}\n'


def write(folder: Path, judged: str, queries: str = QUERIES, name: str = "test.tsv") -> None:
    (folder / "qrels").mkdir(exist_ok=True)
    (folder / "queries.jsonl").write_text(queries)
    (folder / "qrels" / name).write_text(judged)


def read(folder: Path, judged: str, queries: str = QUERIES, name: str = "test.tsv") -> Found:
    write(folder, judged, queries, name)
    return found_in("beir", folder)


def test_queries_and_judgments_are_put_together(tmp_path: Path) -> None:
    found = read(tmp_path, HEADER + "q2\tguide:3\t2\nq1\tdoc\t1\nq1\tother\t0\n")
    assert found.questions == [
        Question("Who?", {"doc:0": 1, "other:0": 0}, external_id="q1"),
        Question("Why?", {"guide:3": 2}, external_id="q2"),
    ]
    assert found.notices == [
        "2 ids have no chunk index: each stands for chunk 0 of its document (id:0)"
    ]


def test_blanks_in_the_header_crlf_and_a_missing_line_end_are_nothing(tmp_path: Path) -> None:
    found = read(tmp_path, " query-id\t corpus-id\tscore \r\nq1\ta\t1\r\nq2\tb\t1")
    assert [dict(q.expected) for q in found.questions] == [{"a:0": 1}, {"b:0": 1}]


def test_mteb_may_store_judgments_as_jsonl_and_ids_as_numbers(tmp_path: Path) -> None:
    queries = '{"_id": 9007199254740993, "text": "Who?"}\n{"_id": "0", "text": "Zero?"}\n'
    judged = (
        '{"query-id": 9007199254740993, "corpus-id": 9007199254740995, "score": 1.0}\n'
        '{"query-id": "0", "corpus-id": "0", "score": 1}\n'
    )
    found = read(tmp_path, judged, queries, "test.jsonl")
    assert [(q.external_id, dict(q.expected)) for q in found.questions] == [
        ("9007199254740993", {"9007199254740995:0": 1}), ("0", {"0:0": 1}),
    ]  # fmt: skip


@pytest.mark.parametrize(("score", "shown"), [("1.5", "'1.5'"), ("", "empty"), ("null", "'null'")])
def test_a_score_that_is_no_integer_refuses_the_query(
    tmp_path: Path, score: str, shown: str
) -> None:
    found = read(tmp_path, f"{HEADER}q1\ta\t{score}\nq2\tb\t1\n")
    [reason] = found.reasons
    assert f"test.tsv:2: 'a:0': the grade is {shown}: an integer is needed" in reason


def test_queries_without_judgments_are_left_out_and_counted(tmp_path: Path) -> None:
    found = read(tmp_path, HEADER + "q1\ta\t1\n")
    assert [q.external_id for q in found.questions] == ["q1"]
    assert "1 questions have no judgment and were left out" in found.notices


def test_judgments_of_a_query_that_is_not_there_are_refused(tmp_path: Path) -> None:
    [reason] = read(tmp_path, HEADER + "q1\ta\t1\nq3\tb\t1\n").reasons
    assert "test.tsv:3: 'q3' is judged here" in reason


@pytest.mark.parametrize("header", ["q1\ta\t1\n", "query\tdoc\tscore\n"])
def test_judgments_without_beirs_header_are_refused(tmp_path: Path, header: str) -> None:
    with pytest.raises(InputError, match=r"test\.tsv:1: the header is .*query-id, corpus-id"):
        read(tmp_path, header + "q2\ta\t1\n")


@pytest.mark.parametrize(("line", "reason"), [
    ('{"text": "Who?"}', "_id is missing: an id is needed"),
    ('{"_id": null, "text": "Who?"}', "_id is null: an id is needed"),
    ('{"_id": "q1", "text": " "}', "question is blank"),
    ('{"_id": "q1"}', "question is null: a text is needed"),
    ("no json", "invalid JSON at column 1"),
])  # fmt: skip
def test_a_query_that_cannot_be_used_is_refused(tmp_path: Path, line: str, reason: str) -> None:
    found = read(tmp_path, HEADER + "q1\ta\t1\n", line + "\n")
    assert f"queries.jsonl:1: {reason}" in found.reasons[0]


def test_the_test_split_is_read_and_the_others_are_named(tmp_path: Path) -> None:
    write(tmp_path, HEADER + "q1\ta\t1\n", name="train.tsv")
    found = read(tmp_path, HEADER + "q2\ta\t1\n")
    assert [q.external_id for q in found.questions] == ["q2"]
    assert found.notices[0] == "judgments of test.tsv; --qrels chooses others: train.tsv"
    train = found_in("beir", tmp_path, ReadOptions(qrels=tmp_path / "qrels" / "train.tsv"))
    assert [q.external_id for q in train.questions] == ["q1"]


def test_one_has_to_be_chosen_of_splits_that_are_no_test(tmp_path: Path) -> None:
    write(tmp_path, HEADER + "q1\ta\t1\n", name="train.tsv")
    write(tmp_path, HEADER + "q1\ta\t1\n", name="dev.tsv")
    with pytest.raises(InputError, match=r"holds dev\.tsv, train\.tsv: choose one with --qrels"):
        found_in("beir", tmp_path)


def test_gzipped_queries_are_read(tmp_path: Path) -> None:
    write(tmp_path, HEADER + "q1\ta\t1\n")
    (tmp_path / "queries.jsonl").unlink()
    (tmp_path / "queries.jsonl.gz").write_bytes(gzip.compress(QUERIES.encode()))
    assert len(found_in("beir", tmp_path).questions) == 1


def test_queries_and_judgments_may_be_named_one_by_one(tmp_path: Path) -> None:
    write(tmp_path, HEADER + "q1\ta\t1\n")
    options = ReadOptions(qrels=tmp_path / "qrels" / "test.tsv")
    assert len(found_in("beir", tmp_path / "queries.jsonl", options).questions) == 1


def test_a_folder_without_queries_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no queries\.jsonl: a BEIR folder is needed"):
        found_in("beir", tmp_path)


def test_unanswerable_questions_need_no_judgment(tmp_path: Path) -> None:
    own = {"recallwatch": {"kind": "unanswerable", "category": "none", "external_id": None}}
    line = json.dumps({"_id": "q1", "text": "Who?", "metadata": own})
    found = read(tmp_path, HEADER, line + "\n")
    assert found.questions == [Question("Who?", {}, kind=Kind.UNANSWERABLE, category="none")]


@pytest.mark.parametrize(
    "line", ['{"_id": "\\ud800", "text": "a"}', '{"_id": "0", "text": "\\ud800"}']
)
def test_half_a_surrogate_is_refused_and_can_be_written(tmp_path: Path, line: str) -> None:
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text(line + "\n")
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n0\ta\t1\n")
    (refused, *_) = [
        each for each in reader("beir")(str(tmp_path), options=ReadOptions())
        if isinstance(each, Refused)
    ]  # fmt: skip
    assert refused.raw.encode()


OTHERS = "q1\ta:0\t1\nq2\tb:0\t1\n"


@pytest.mark.parametrize("row", ["q1\tc\t1\textra", 'q1\t"c"x\t1', "q1\tc\tx"])
def test_a_row_that_is_no_judgment_refuses_its_query(tmp_path: Path, row: str) -> None:
    found = read(tmp_path, f"{HEADER}{OTHERS}{row}\n")
    assert [each.question.text for each in found.read] == ["Why?"]
    [refused] = found.refused
    assert refused.place.endswith("test.tsv:4")
    assert json.loads(refused.raw)["expected"]["a:0"] == 1


def test_a_quotation_mark_that_takes_other_judgments_in_refuses_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"test\.tsv:2: a quotation mark is never closed.*no part"):
        read(tmp_path, f'{HEADER}q1\t"c\t1\n{OTHERS}')


@pytest.mark.parametrize("line", [
    '{"query-id": "q1", "corpus-id": null, "score": 1}', '{"query-id": "q1", "score": 1}',
    '{"query-id": "q1", "corpus-id": "\\udc00", "score": 1}',
    '{"query-id": "q1", "corpus-id": "c"}',
])  # fmt: skip
def test_an_object_that_is_no_judgment_refuses_its_query(tmp_path: Path, line: str) -> None:
    good = [json.dumps({"query-id": q, "corpus-id": "a:0", "score": 1.0}) for q in ("q1", "q2")]
    found = read(tmp_path, "\n".join([*good, line]), name="test.jsonl")
    assert [each.question.text for each in found.read] == ["Why?"]
    [refused] = found.refused
    assert refused.place.endswith("test.jsonl:3")
    assert '"a:0": 1' in refused.raw
    assert refused.raw.encode()


def test_a_header_that_comes_again_judges_nothing(tmp_path: Path) -> None:
    found = read(tmp_path, HEADER + OTHERS + HEADER)
    assert len(found.read) == 2
    assert "the names of the header stand here again" in found.reasons[0]


def test_a_refused_query_can_be_imported_once_it_is_corrected(tmp_path: Path) -> None:
    [refused] = read(tmp_path, HEADER + "q1\tMED-10\t2\nq1\ta:3\t0.5\nq2\tb\t1\n").refused
    again = tmp_path / "again.jsonl"
    again.write_text(refused.raw.replace("0.5", "1"))
    assert found_in("jsonl", again).questions == [
        Question("Who?", {"MED-10:0": 2, "a:3": 1}, external_id="q1")
    ]


def test_queries_without_a_relevant_document_are_said(tmp_path: Path) -> None:
    own = '{"_id": "q3", "text": "None?", "metadata": {"recallwatch": {"kind": "unanswerable"}}}\n'
    found = read(tmp_path, HEADER + "q1\ta:0\t0\nq2\tb:0\t1\n", QUERIES + own)
    assert found.notices == [
        "1 questions have judgments, but none of a relevant document: taken as unanswerable"
    ]


def test_a_folder_that_nobody_may_look_into_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, HEADER + OTHERS)

    def closed(self: Path) -> object:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "iterdir", closed)
    with pytest.raises(InputError, match=r"qrels: cannot be read: Permission denied$"):
        found_in("beir", tmp_path)


def test_a_person_may_say_the_source_of_all(tmp_path: Path) -> None:
    write(tmp_path, HEADER + OTHERS)
    found = found_in("beir", tmp_path, ReadOptions(origin=Source.SYNTHETIC))
    assert {question.source for question in found.questions} == {Source.SYNTHETIC}
