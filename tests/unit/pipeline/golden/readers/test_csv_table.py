"""CSV and TSV files as people and Excel write them."""

import gzip
import os
import tracemalloc
from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.golden.formats import ReadOptions, Refused, reader
from pipeline.golden.record import FIELDS
from pipeline.types import Kind, Question, Source
from tests.unit.pipeline.golden.readers.conftest import ReadTable, found_in

PLAIN = [Question("Who?", {"a:0": 1}, category="factual")]


@pytest.mark.parametrize(("delimiter", "name"), [(",", ""), (";", "a semicolon"), ("\t", "a tab"),
                                                 ("|", "a vertical bar")])  # fmt: skip
def test_the_delimiter_is_found_and_said(read_csv: ReadTable, delimiter: str, name: str) -> None:
    found = read_csv("question,expected,category\nWho?,a:0,factual\n".replace(",", delimiter))
    assert found.questions == PLAIN
    assert found.notices == ([f"{name} was taken for the delimiter"] if name else [])


def test_a_tab_is_what_a_tsv_file_is_expected_to_have(read_csv: ReadTable) -> None:
    assert read_csv("question\texpected\nWho?\ta:0\n", "golden.tsv").notices == []


def test_a_header_with_commas_in_one_name_is_split_at_the_delimiter_that_gives_names(
    read_csv: ReadTable,
) -> None:
    found = read_csv('question;expected;"notes"\nWho, and why?;a,b:0;x,y\n')
    assert found.questions == [Question("Who, and why?", {"a,b:0": 1}, notes="x,y")]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_excels_first_line_names_the_delimiter(read_csv: ReadTable, line_end: str) -> None:
    content = "sep=;\nquestion;expected;category\nWho?;a:0;factual\n".replace("\n", line_end)
    found = read_csv(content)
    assert found.questions == PLAIN
    assert found.head == content.partition("Who?")[0]


def test_a_byte_order_mark_is_no_part_of_a_name(read_csv: ReadTable) -> None:
    assert read_csv(b"\xef\xbb\xbfquestion,expected,category\nWho?,a:0,factual").questions == PLAIN


def test_windows_1252_is_detected_and_said(read_csv: ReadTable) -> None:
    found = read_csv("question,expected\n“Onde está” €5?,a:0\n".encode("cp1252"))
    assert found.questions == [Question("“Onde está” €5?", {"a:0": 1})]
    [notice] = found.notices
    assert "Windows-1252" in notice


def test_a_damaged_utf_8_file_is_not_taken_for_windows_1252(read_csv: ReadTable) -> None:
    content = "question,expected\nOnde está?,a:0\nOnde é?,a:0\n".encode()
    with pytest.raises(InputError, match=r"golden\.csv:3: the line is not UTF-8, but .*UTF-8"):
        read_csv(content.replace("é".encode(), b"\xc3"))


def test_a_byte_that_no_encoding_explains_is_refused_with_its_line(read_csv: ReadTable) -> None:
    with pytest.raises(InputError, match=r"golden\.csv:2: byte 3 .*0x81.* neither UTF-8 nor"):
        read_csv(b"question,expected\nab\x81,a:0\n")


def test_utf_16_is_refused_with_what_to_do(read_csv: ReadTable) -> None:
    with pytest.raises(InputError, match=r"UTF-16.* save it as UTF-8"):
        read_csv("question,expected\nWho?,a:0\n".encode("utf-16"))


def test_a_line_break_within_quotes_belongs_to_the_text(read_csv: ReadTable) -> None:
    found = read_csv('question,expected\r\n"Who\r\nis ""it""?","a:0\nb:0"\r\nWhy?,a:0\r\n')
    assert found.questions == [
        Question('Who\r\nis "it"?', {"a:0": 1, "b:0": 1}), Question("Why?", {"a:0": 1}),
    ]  # fmt: skip
    assert [record.place.rpartition(":")[2] for record in found.read] == ["2", "5"]
    assert found.read[0].raw == '"Who\r\nis ""it""?","a:0\nb:0"\r\n'


def test_empty_columns_at_the_right_and_empty_rows_are_nothing(read_csv: ReadTable) -> None:
    found = read_csv("question,expected,category,,\nWho?,a:0,factual,,,,\n,,,,\n \n")
    assert found.questions == PLAIN


def test_blanks_around_the_names_of_a_header_are_nothing(read_csv: ReadTable) -> None:
    assert read_csv(" Question ,\u00a0EXPECTED, category\nWho?,a:0,factual\n").questions == PLAIN


def test_a_cell_under_no_name_is_refused_with_its_column(read_csv: ReadTable) -> None:
    found = read_csv(",question,expected\n0,Who?,a:0\n,Why?,a:0\n")
    assert [each.question.text for each in found.read] == ["Why?"]
    [reason] = found.reasons
    assert "golden.csv:2: column 1 has no name in the header, but holds '0'" in reason


MUST_PASS = [
    ("TRUE", True), ("FALSE", False), ("wahr", True), ("Falso", False), ("1", True), ("", False),
]  # fmt: skip


@pytest.mark.parametrize(("word", "value"), MUST_PASS)
def test_must_pass_is_read_as_excel_writes_it(
    read_csv: ReadTable, word: str, *, value: bool
) -> None:
    [question] = read_csv(f"question,expected,must_pass\nWho?,a:0,{word}\n").questions
    assert question.must_pass is value


def test_must_pass_that_is_neither_is_refused(read_csv: ReadTable) -> None:
    [reason] = read_csv("question,expected,must_pass\nWho?,a:0,perhaps\n").reasons
    assert "must_pass is 'perhaps': TRUE or FALSE is needed" in reason


def test_every_field_has_a_column(read_csv: ReadTable) -> None:
    found = read_csv(
        "id,query,expected_keys,kind,category,tenant,language,source,notes,evidence\n"
        '007,Who?,a:0,Answerable,factual,acme,pt,Log,seen,"{""a:0"": ""It is me.""}"\n'
    )
    assert found.questions == [
        Question("Who?", {"a:0": 1}, category="factual", tenant="acme", language="pt",
                 source=Source.LOG, external_id="007", notes="seen", evidence={"a:0": "It is me."})
    ]  # fmt: skip


def test_expected_keys_may_stand_in_several_columns_with_grades(read_csv: ReadTable) -> None:
    found = read_csv(
        "question,expected_1,grade_1,Expected 2,Grade 2,expected_3\n"
        "Who?,a:0,2,b:0,0.0,c:0=3\nWhy?,a:0,-1,b:0,1,\n"
    )
    assert [each.expected for each in found.questions] == [
        {"a:0": 2, "b:0": 0, "c:0": 3}, {"a:0": -1, "b:0": 1},
    ]  # fmt: skip


@pytest.mark.parametrize(("row", "reason"), [
    ("Who?,a:0,,,", "the grade is empty: an integer is needed"),
    ("Who?,a:0,1.5,,", "the grade is '1.5': an integer is needed"),
    ("Who?,a:0,null,,", "the grade is 'null': an integer is needed"),
    ("Who?,,2,b:0,1", "grade 1 is '2', but the cell of its keys is empty"),
    ("Who?,a:0=2,1,,", "grades stand both behind the keys and in grade 1"),
    ("Who?,a:0,1,a:0,1", "expected names the key 'a:0' twice"),
])  # fmt: skip
def test_a_grade_that_cannot_be_used_is_refused_with_its_line(
    read_csv: ReadTable, row: str, reason: str
) -> None:
    [found] = read_csv(f"question,expected_1,grade_1,expected_2,grade_2\n{row}\n").reasons
    assert f"golden.csv:2: {reason}" in found


def test_an_unanswerable_question_has_an_empty_cell(read_csv: ReadTable) -> None:
    found = read_csv("question,expected,kind\nWho?,,unanswerable\nWhy?,,\n")
    assert found.read[0].question == Question("Who?", {}, kind=Kind.UNANSWERABLE)
    [reason] = found.reasons
    assert "golden.csv:3: no key is expected: name the chunks" in reason


def test_a_row_with_a_stray_delimiter_is_refused(read_csv: ReadTable) -> None:
    [reason] = read_csv("question,expected\nWho, me?,a:0\n").reasons
    assert "golden.csv:2: the row holds 3 cells, the header 2" in reason


def test_a_quotation_mark_that_is_never_closed_is_refused_at_its_row(read_csv: ReadTable) -> None:
    found = read_csv('question,expected\nWhy?,a:0\n"Who?,a:0\nWhen?,b:0\n')
    assert [each.question.text for each in found.read] == ["Why?"]
    [reason] = found.reasons
    assert "golden.csv:3: a quotation mark is never closed" in reason
    assert "2 lines were taken for one row" in reason
    assert found.refused[0].raw == '"Who?,a:0\nWhen?,b:0\n'


@pytest.mark.parametrize(
    "again", ["question,expected", "\ufeff Question , expected", "question,expected,"]
)
def test_a_header_that_comes_again_is_no_question(read_csv: ReadTable, again: str) -> None:
    header = again.replace("\ufeff", "").rstrip(",")
    found = read_csv(f"{header}\nWho?,a:0\n{again}\nWhen?,b:0\n")
    assert [each.question.text for each in found.read] == ["Who?", "When?"]
    [reason] = found.reasons
    assert "golden.csv:3: the names of the header stand here again: delete the row" in reason


def test_lines_that_end_as_on_old_macs_are_counted(read_csv: ReadTable) -> None:
    found = read_csv('question,expected\rWho?,a:0\rWhy?,a:0=x\r"When\rwas it?",b:0\rHow?,\r')
    assert [each.place.rpartition(":")[2] for each in found.read] == ["2", "4"]
    assert [each.place.rpartition(":")[2] for each in found.refused] == ["3", "6"]
    with pytest.raises(InputError, match=r"golden\.csv:3: byte 1 "):
        read_csv(b"question,expected\rWho?,a:0\r\x81,a:0\r")


@pytest.mark.parametrize("row", ["Who?,a:0=x", "Who?,a:0,b:0", '"Who?"x",a:0'])
def test_what_is_refused_says_which_question_it_is(read_csv: ReadTable, row: str) -> None:
    [refused] = read_csv(f"question,expected\n{row}\n").refused
    assert str(refused.text).startswith("Who?")


@pytest.mark.parametrize("changed", [b"question,expected\nWho?,a:0\nWhy?,a:0\n",
                                     b"question,expected\nWh\xf6?,a:0\n"])  # fmt: skip
def test_a_file_that_changes_while_it_is_read_is_refused(
    tmp_path: Path, changed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "golden.csv"
    path.write_bytes(b"question,expected\nWho?,a:0\n")

    def find_and_change(file: Path) -> str:
        file.write_bytes(changed)
        return "utf-8"

    monkeypatch.setattr("pipeline.golden.readers.csv_rows._encoding", find_and_change)
    with pytest.raises(InputError, match=r"golden\.csv: was changed while it was read"):
        found_in("csv", path)


def test_a_person_may_say_the_source_of_all(tmp_path: Path) -> None:
    path = tmp_path / "golden.csv"
    path.write_text("question,expected,source\nWho?,a:0,gpt-4\n")
    [reason] = found_in("csv", path).reasons
    assert "source is 'gpt-4': it must be one of manual, synthetic, log" in reason
    [question] = found_in("csv", path, ReadOptions(origin=Source.LOG)).questions
    assert question.source is Source.LOG


def test_text_behind_a_quotation_mark_is_refused_and_the_rest_is_read(read_csv: ReadTable) -> None:
    found = read_csv('question,expected\n"Who" is it?,a:0\nWhen?,b:0\n')
    assert [each.question.text for each in found.read] == ["When?"]
    [reason] = found.reasons
    assert "golden.csv:2: cannot be read as CSV" in reason
    assert found.refused[0].raw == '"Who" is it?,a:0\n'


@pytest.mark.parametrize(("header", "reason"), [
    ("text,keys", "has no column question: a header is needed"),
    ("question,expected,answer", "column 'answer' is not known: delete it or rename it"),
    ("question,question", "column 'question' stands twice"),
    ("question,query,expected", "columns question and query are one field"),
    ("", "is empty|no column question"),
])  # fmt: skip
def test_a_header_that_cannot_be_used_is_refused(
    read_csv: ReadTable, header: str, reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        read_csv(f"{header}\nWho?,a:0\n" if header else "")


def test_ids_without_a_chunk_index_are_documents_and_this_is_said(read_csv: ReadTable) -> None:
    found = read_csv("question,expected\nWho?,guide.html; a:7\n")
    assert found.questions == [Question("Who?", {"guide.html:0": 1, "a:7": 1})]
    [notice] = found.notices
    assert notice.startswith("1 ids have no chunk index: each stands for chunk 0")


def test_every_id_is_a_document_where_a_person_says_so(read_csv: ReadTable) -> None:
    found = read_csv("question,expected\nWho?,isbn:451450523\n", document_ids=True)
    assert found.questions == [Question("Who?", {"isbn:451450523:0": 1})]


def test_an_apostrophe_that_guards_a_formula_is_taken_off_in_our_own_export(
    read_csv: ReadTable,
) -> None:
    row = "'=SUM(A1)?,'-a:0" + "," * (len(FIELDS) - 2)
    [question] = read_csv(f"{','.join(FIELDS)}\n{row}\n").questions
    assert question == Question("=SUM(A1)?", {"-a:0": 1})


def test_an_apostrophe_of_another_table_is_part_of_its_text(read_csv: ReadTable) -> None:
    [question] = read_csv("question,expected\n'-x' flag?,'-a:0\n").questions
    assert question == Question("'-x' flag?", {"'-a:0": 1})


def test_blank_and_long_questions_are_refused(read_csv: ReadTable) -> None:
    found = read_csv(f"question,expected\n \u200b,a:0\n{'x' * 8001},a:0\n")
    assert [reason.partition("golden.csv:")[2] for reason in found.reasons] == [
        "2: question is blank",
        "3: question is 8,001 characters long; at most 8,000 are allowed",
    ]


def test_a_gzipped_table_is_read(read_csv: ReadTable) -> None:
    packed = gzip.compress(b"question,expected,category\nWho?,a:0,factual\n")
    assert read_csv(packed, "golden.csv.gz").questions == PLAIN


def test_a_git_lfs_pointer_is_refused(read_csv: ReadTable) -> None:
    with pytest.raises(InputError, match=r"golden\.csv:1: this is a Git LFS pointer"):
        read_csv("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")


def test_what_is_refused_is_read_again_once_it_is_corrected(
    tmp_path: Path, read_csv: ReadTable
) -> None:
    found = read_csv("sep=;\nquestion;expected\nWho?;a:0=x\nWhy?;b:0\n")
    again = tmp_path / "again.csv"
    again.write_text(found.head + found.refused[0].raw.replace("=x", "=2"))
    assert found_in("csv", again).questions == [Question("Who?", {"a:0": 2})]


def test_an_option_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "golden.csv"
    path.write_text("question,expected\nWho?,a:0\n")
    with pytest.raises(InputError, match="has no use for --qrels"):
        list(reader("csv")(str(path), options=ReadOptions(qrels=path)))


def test_a_pipe_is_refused_as_a_table_is_read_twice(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "golden.csv")
    with pytest.raises(InputError, match="a table is read twice, which a pipe cannot be"):
        found_in("csv", tmp_path / "golden.csv")


def test_memory_stays_flat(tmp_path: Path) -> None:
    path = tmp_path / "large.csv"

    def peak(rows: int) -> int:
        with path.open("w") as file:
            file.write("question,expected\n")
            file.writelines(f"Is it {n}?,a:{n}\n" for n in range(rows))
        tracemalloc.start()
        for _ in reader("csv")(str(path), options=ReadOptions()):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10)
    assert peak(5_000) < peak(200) * 1.3


@pytest.mark.parametrize("cell", ["MED-10=2; MED-11=1", "MED-12=0", "a:0 b:0"])
def test_what_may_be_a_grade_or_a_second_id_is_refused(tmp_path: Path, cell: str) -> None:
    path = tmp_path / "golden.csv"
    path.write_text(f"question,expected\nWho?,{cell}\n")
    (refused,) = [
        each for each in reader("csv")(str(path), options=ReadOptions())
        if isinstance(each, Refused)
    ]  # fmt: skip
    assert "JSON object" in refused.reason
