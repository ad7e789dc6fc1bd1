"""TREC topics and qrels as they are passed around."""

import gzip
import json
import tracemalloc
from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.golden.formats import Read, ReadOptions, Record, Refused, reader
from pipeline.types import Kind, Question
from tests.shared import conformance, needs_shared
from tests.unit.pipeline.golden.readers.conftest import Found, found_in

TOPICS = "301\tInternational Organized Crime\n302\tPoliomyelitis\n"
CRIME, POLIO = "International Organized Crime", "Poliomyelitis"


def read(folder: Path, qrels: str | bytes, topics: str | bytes = TOPICS) -> Found:
    for name, content in (("topics.tsv", topics), ("qrels.txt", qrels)):
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return found_in("trec", folder)


def test_judgments_and_topics_are_put_together(tmp_path: Path) -> None:
    found = read(tmp_path, "302 0 b:0 1\n301 0 a:3 2\n301 0 c:0 0\n302 0 a:1 1\n")
    assert found.questions == [
        Question(CRIME, {"a:3": 2, "c:0": 0}, external_id="301"),
        Question(POLIO, {"b:0": 1, "a:1": 1}, external_id="302"),
    ]
    assert found.read[1].place == f"{tmp_path / 'topics.tsv'}:2"


@pytest.mark.parametrize("line", [
    "301\t0\ta:0\t1", "301   0\t a:0    1", " 301 Q0 a:0 1 ", "301\t\t0\ta:0 1",
])  # fmt: skip
@pytest.mark.parametrize("line_end", ["\n", "\r\n", ""])
def test_fields_are_apart_by_tabs_or_runs_of_blanks(
    tmp_path: Path, line: str, line_end: str
) -> None:
    qrels = f"302 0 b:0 1\r\n{line}{line_end}"
    topics = TOPICS.replace("\n", "\r\n").removesuffix("\r\n")
    assert read(tmp_path, qrels, topics).questions == [
        Question(CRIME, {"a:0": 1}, external_id="301"),
        Question(POLIO, {"b:0": 1}, external_id="302"),
    ]


def test_comment_lines_and_blank_lines_are_nothing(tmp_path: Path) -> None:
    qrels = "# judged in 2026\n\n301 0 CR#93E-1860:0 1\n # more\n302 0 b:0 1\n"
    found = read(tmp_path, qrels, "# the topics\n\n" + TOPICS)
    assert found.questions[0].expected == {"CR#93E-1860:0": 1}


def test_ids_may_hold_whatever_a_line_can(tmp_path: Path) -> None:
    topics = "0\tZero?\n9007199254740993\tLarge?\nhttps://a.example:80/q\tA URL?\nmy q, 1\tBlank?\n"
    qrels = (
        "0 0 0 1\n9007199254740993 0 9007199254740995 1\nhttps://a.example:80/q 0 a::b,c#d 2\n"
        "my q, 1\t0\tmy guide, 2nd.pdf:4\t1\n"
    )
    assert [(q.external_id, dict(q.expected)) for q in read(tmp_path, qrels, topics).questions] == [
        ("0", {"0:0": 1}),
        ("9007199254740993", {"9007199254740995:0": 1}),
        ("https://a.example:80/q", {"a::b,c#d:0": 2}),
        ("my q, 1", {"my guide, 2nd.pdf:4": 1}),
    ]


def test_documents_are_chunk_0_of_themselves_and_this_is_said(tmp_path: Path) -> None:
    found = read(tmp_path, "301 0 CR93E-10279 1\n302 0 FT:7 1\n")
    assert [dict(q.expected) for q in found.questions] == [{"CR93E-10279:0": 1}, {"FT:7": 1}]
    assert any(each.startswith("1 ids have no chunk index") for each in found.notices)
    whole = found_in("trec", tmp_path, ReadOptions(document_ids=True))
    assert whole.questions[1].expected == {"FT:7:0": 1}


def test_a_judgment_that_is_repeated_counts_once_and_this_is_said(tmp_path: Path) -> None:
    found = read(tmp_path, "301 0 a 1\n301 0 a:0 1\n302 0 b 1\n")
    assert found.questions[0].expected == {"a:0": 1}
    assert any("1 judgments repeat an earlier line" in each for each in found.notices)


def test_a_judgment_that_comes_back_with_another_grade_refuses_the_topic(tmp_path: Path) -> None:
    found = read(tmp_path, "301 0 a:0 1\n302 0 b 1\n301 0 a:0 2\n")
    [reason] = found.reasons
    assert reason == (
        f"{tmp_path / 'qrels.txt'}:3: 'a:0' has grade 2 here and 1 at line 1: keep one"
    )
    assert [each.question.text for each in found.read] == [POLIO]
    assert '"expected": {"a:0": 1, "a:0": 2}' in found.refused[0].raw


@pytest.mark.parametrize("grade", ["1.5", "null", "x", "1e3"])
def test_a_grade_that_is_no_integer_refuses_the_topic_with_its_line(
    tmp_path: Path, grade: str
) -> None:
    found = read(tmp_path, f"301 0 a:0 1\n301 0 b:0 {grade}\n302 0 b 1\n")
    [reason] = found.reasons
    assert f"qrels.txt:2: 'b:0': the grade is '{grade}': an integer is needed" in reason
    assert found.refused[0].raw.startswith('{"external_id": "301", "question": "Int')


def test_negative_and_zero_grades_are_judged_not_relevant(tmp_path: Path) -> None:
    found = read(tmp_path, "301 0 a:0 -2\n301 0 b:0 0\n302 0 b 1.0\n")
    assert found.questions[0] == Question(
        CRIME, {"a:0": -2, "b:0": 0}, kind=Kind.UNANSWERABLE, external_id="301"
    )
    assert found.questions[1].expected == {"b:0": 1}


def test_a_line_of_other_than_four_fields_is_refused(tmp_path: Path) -> None:
    found = read(tmp_path, "301 0 my guide.pdf:0 1\n301 0 a 1\n302 0 b 1\n")
    [reason] = found.reasons
    assert "qrels.txt:1: a judgment has 4 fields" in reason
    assert "the line 5: put tabs between them" in reason


def test_topics_without_a_judgment_are_left_out_and_counted(tmp_path: Path) -> None:
    found = read(tmp_path, "301 0 a:0 1\n")
    assert [q.external_id for q in found.questions] == ["301"]
    assert "1 questions have no judgment and were left out" in found.notices


def test_judgments_of_a_topic_that_is_not_there_are_refused(tmp_path: Path) -> None:
    found = read(tmp_path, "301 0 a:0 1\n303 0 b:0 1\n302 0 a:0 1\n303 0 c:0 1\n")
    [reason] = found.reasons
    assert f"qrels.txt:2: '303' is judged here, but {tmp_path / 'topics.tsv'} does not" in reason
    assert json.loads(found.refused[0].raw)["expected"] == {"b:0": 1, "c:0": 1}


@pytest.mark.parametrize(("line", "reason"), [
    ("303 no tab", "a topic is id<TAB>text"),
    ("#303\tWho?", "the id begins with #"),
    ("303\t \u200b", "question is blank"),
    ("303\t" + "x" * 8001, "question is 8,001 characters long"),
])  # fmt: skip
def test_a_line_that_is_no_topic_is_refused(tmp_path: Path, line: str, reason: str) -> None:
    found = read(tmp_path, "301 0 a 1\n302 0 a 1\n303 0 a 1\n", f"{TOPICS}{line}\n")
    assert f"topics.tsv:3: {reason}" in found.reasons[0]


def test_topics_that_are_not_utf_8_are_refused_with_their_line(tmp_path: Path) -> None:
    found = read(tmp_path, "301 0 a 1\n", b"300\tcaf\xe9\n301\tWho?\n")
    [reason] = found.reasons
    assert "topics.tsv:1: byte 8 of the line (0xe9) is not UTF-8" in reason


SGML = """
<top>
<num> Number: 301
<title> International
Organized   Crime

<desc> Description:
Identify organizations.
</top>
<TOP>
<NUM>302</NUM><TITLE>Topic: Poliomyelitis</TITLE>
</TOP>
"""


def test_sgml_topics_give_their_number_and_title(tmp_path: Path) -> None:
    found = read(tmp_path, "301 0 a:0 1\n302 0 b:0 1\n", SGML)
    assert [(q.external_id, q.text) for q in found.questions] == [("301", CRIME), ("302", POLIO)]
    assert found.read[1].place.endswith("topics.tsv:10")


@pytest.mark.parametrize(("block", "reason"), [
    ("<top>\n<num> 303\n</top>\n", "the topic has no <title>"),
    ("<top>\n<title> Who\n</top>\n", "the topic has no <num>"),
    ("<top>\n<num> 303\n<title> Who\n", "the topic has no </top>"),
])  # fmt: skip
def test_an_sgml_topic_that_lacks_something_is_refused(
    tmp_path: Path, block: str, reason: str
) -> None:
    found = read(tmp_path, "301 0 a 1\n302 0 a 1\n", block + SGML)
    [refused] = found.reasons
    assert f"topics.tsv:1: {reason}" in refused
    assert len(found.read) == 2


def test_topics_and_judgments_may_be_named_one_by_one(tmp_path: Path) -> None:
    (tmp_path / "queries").write_text(TOPICS)
    qrels = tmp_path / "judged.gz"
    qrels.write_bytes(gzip.compress(b"301 0 a 1\n302 0 a 1\n"))
    found = found_in("trec", tmp_path / "queries", ReadOptions(qrels=qrels))
    assert [q.external_id for q in found.questions] == ["301", "302"]


def test_a_file_of_topics_alone_is_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "topics.tsv").write_text(TOPICS)
    with pytest.raises(InputError, match="name their judgments with --qrels FILE"):
        found_in("trec", tmp_path / "topics.tsv")
    with pytest.raises(InputError, match=r"one file qrels\* is needed, and there is none"):
        found_in("trec", tmp_path)


def test_a_file_without_a_topic_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no topic"):
        read(tmp_path, "301 0 a 1\n", "")


@needs_shared
def test_trec_evals_own_qrels_are_read_as_pytrec_eval_reads_them(tmp_path: Path) -> None:
    import pytrec_eval  # noqa: PLC0415 - the oracle of this test

    qrels = conformance("trec_eval", "qrels.test")
    with qrels.open() as file:
        truth = pytrec_eval.parse_qrel(file)
    (tmp_path / "topics.txt").write_text("".join(f"{name}\tTopic {name}\n" for name in truth))
    found = found_in("trec", tmp_path, ReadOptions(qrels=qrels, document_ids=True))
    assert {
        q.external_id: {key.removesuffix(":0"): grade for key, grade in q.expected.items()}
        for q in found.questions
    } == truth


@needs_shared
def test_comments_in_trec_evals_own_qrels_change_nothing(tmp_path: Path) -> None:
    (tmp_path / "topics.txt").write_text("301\tCrime\n302\tPolio\n")
    with_comments = conformance("trec_eval", "qrels.test.with-comments")
    found = found_in("trec", tmp_path, ReadOptions(qrels=with_comments))
    lines = [
        line.split()
        for line in with_comments.read_text().splitlines()
        if not line.startswith("#") and line.split()[0] in {"301", "302"}
    ]
    assert sum(len(each.question.expected) for each in found.read) == len(lines)


def test_memory_stays_flat(tmp_path: Path) -> None:
    def peak(topics: int) -> int:
        with (tmp_path / "topics.tsv").open("w") as file:
            file.writelines(f"{n}\tIs it {n}?\n" for n in range(topics))
        with (tmp_path / "qrels.txt").open("w") as file:
            file.writelines(f"{n} 0 a:{n} 1\n" for n in reversed(range(topics)))
        tracemalloc.start()
        for _ in reader("trec")(str(tmp_path), options=ReadOptions()):
            pass
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10)
    assert peak(6_000) < peak(3_000) * 1.3


def written(folder: Path, topics: str | bytes, qrels: str) -> list[Record]:
    content = topics if isinstance(topics, bytes) else topics.encode()
    (folder / "topics.tsv").write_bytes(content)
    (folder / "qrels.txt").write_text(qrels)
    return list(reader("trec")(str(folder), options=ReadOptions()))


def test_a_broken_line_of_qrels_refuses_its_topic_and_no_other(tmp_path: Path) -> None:
    read = written(tmp_path, "1\tone?\n2\ttwo?\n", "1 0 a:0 1\n1 0 b\n2 0 c:0 1\n")
    (refused,) = [each for each in read if isinstance(each, Refused)]
    assert refused.place == f"{tmp_path / 'qrels.txt'}:2"
    assert [each.question.text for each in read if isinstance(each, Read)] == ["two?"]


def test_a_refused_topic_has_the_keys_that_its_correction_needs(tmp_path: Path) -> None:
    read = written(tmp_path, "1\tone?\n", "1 0 b 0.5\n1 0 c 1\n")
    (refused,) = [each for each in read if isinstance(each, Refused)]
    assert json.loads(refused.raw)["expected"] == {"b:0": 0.5, "c:0": 1}


def test_a_title_ends_at_the_next_tag_and_not_at_a_sign(tmp_path: Path) -> None:
    block = "<top>\n<num> Number: 1\n<title> Is a < b &amp; c?\n<desc> No.\n</top>\n"
    (read, *_) = written(tmp_path, block, "1 0 a:0 1\n")
    assert isinstance(read, Read)
    assert read.question.text == "Is a < b & c?"


def test_a_block_in_another_encoding_is_refused_and_not_changed(tmp_path: Path) -> None:
    block = "<top>\n<num> Number: 1\n<title> Straße\n</top>\n".encode("latin-1")
    (read, *_) = written(tmp_path, block, "1 0 a:0 1\n")
    assert isinstance(read, Refused)
    assert "UTF-8" in read.reason


def test_an_id_that_begins_like_a_tag_swallows_no_topic(tmp_path: Path) -> None:
    read = written(
        tmp_path, "1\tone?\n<2>\ttwo?\n3\tthree?\n", "1 0 a:0 1\n<2> 0 b:0 1\n3 0 c:0 1\n"
    )
    texts = [each.question.text for each in read if isinstance(each, Read)]
    assert texts == ["one?", "two?", "three?"]


@pytest.mark.parametrize("line", [b"1 0 b", b"1 0 b c 1", b"1\t0\tb", b"1 0 caf\xe9 1", b"1"])
def test_a_line_that_is_no_judgment_refuses_the_topic_of_its_first_field(
    tmp_path: Path, line: bytes
) -> None:
    found = read(tmp_path, b"1 0 a:0 1\n" + line + b"\n2 0 c:0 1\n", "1\tone?\n2\ttwo?\n")
    assert [each.question.text for each in found.read] == ["two?"]
    [refused] = found.refused
    assert refused.place == f"{tmp_path / 'qrels.txt'}:2"
    stated = json.loads(refused.raw)
    assert (stated["question"], stated["expected"]) == (
        "one?", {"a:0": 1, line.decode(errors="replace"): None}
    )  # fmt: skip


def test_an_id_with_blanks_is_the_first_field_of_a_broken_line_with_tabs(tmp_path: Path) -> None:
    found = read(tmp_path, "my q\t0\ta:0\t1\nmy q\t0\tb:0\n", "my q\tone?\n")
    assert (found.read, len(found.refused)) == ([], 1)


def test_a_broken_line_of_no_topic_is_refused_alone_and_for_itself(tmp_path: Path) -> None:
    found = read(tmp_path, "301 0 a 1\nwhat is this?\n302 0 b 1\n")
    assert len(found.read) == 2
    [reason] = found.reasons
    assert "qrels.txt:2: a judgment has 4 fields" in reason


def test_what_is_refused_can_be_imported_once_its_fault_is_corrected(tmp_path: Path) -> None:
    qrels = "301 0 a +2\n301 0 a 2\n301 0 b 1.0\n301 0 c:7 x\n"
    [refused] = read(tmp_path, qrels, "301\tWho?\n").refused
    again = tmp_path / "again.jsonl"
    again.write_text(refused.raw.replace('"x"', "3"))
    assert found_in("jsonl", again).questions == [
        Question("Who?", {"a:0": 2, "b:0": 1, "c:7": 3}, external_id="301")
    ]


def test_questions_without_a_relevant_document_are_counted_and_said(tmp_path: Path) -> None:
    found = read(tmp_path, "301 0 a:0 0\n301 0 b:0 -1\n302 0 b:0 1\n")
    assert found.questions[0].kind is Kind.UNANSWERABLE
    assert found.notices == [
        "1 questions have judgments, but none of a relevant document: taken as unanswerable"
    ]


def test_lines_of_old_macs_are_lines(tmp_path: Path) -> None:
    found = read(tmp_path, "301 0 a:0 1\r302 0 b:0 x\r", TOPICS.replace("\n", "\r"))
    assert [(each.question.text, each.place) for each in found.read] == [
        (CRIME, f"{tmp_path / 'topics.tsv'}:1")
    ]
    assert "qrels.txt:2: 'b:0': the grade is 'x'" in found.reasons[0]
    blocks = read(tmp_path, "301 0 a:0 1\r302 0 b:0 1\r", SGML.replace("\n", "\r"))
    assert [question.text for question in blocks.questions] == [CRIME, POLIO]


def blocks(folder: Path, title: str) -> Found:
    return read(folder, "1 0 a:0 1\n", f"<top>\n<num> 1\n<title>{title}\n<desc> No.\n</top>\n")


@pytest.mark.parametrize(("title", "text"), [
    ("is a<b or b>c?", "is a<b or b>c?"), ("AT&T &amp; R&D&#33; &copying", "AT&T & R&D! &copying"),
    ("x <= 3, y <3", "x <= 3, y <3"), ("one\n  two</title>", "one two"),
    ("one <desc> two", "one"), ("one\n<E-desc> two", "one"), ("a &lt;b&gt; c", "a <b> c"),
])  # fmt: skip
def test_a_title_is_read_to_the_next_tag(tmp_path: Path, title: str, text: str) -> None:
    assert [question.text for question in blocks(tmp_path, title).questions] == [text]


@pytest.mark.parametrize("title", ["Is <b>this</b> it?", "is a <b> c?", 'see <a href="x">it</a>'])
def test_a_title_with_a_tag_in_it_is_refused_and_not_cut(tmp_path: Path, title: str) -> None:
    [refused] = blocks(tmp_path, title).refused
    assert "the title holds '<" in refused.reason
    assert refused.place.endswith("topics.tsv:1")


def test_bytes_of_another_encoding_are_refused_at_their_line(tmp_path: Path) -> None:
    topics = b"<top>\n<num> 301\n<title> caf\xe9\n</top>\n<top>\n<num> 302\n<title> Who\n</top>\n"
    found = read(tmp_path, "301 0 a 1\n302 0 a 1\n", topics)
    assert [each.question.text for each in found.read] == ["Who"]
    [reason] = found.reasons
    assert "topics.tsv:3: byte 12 of the line (0xe9) is not UTF-8" in reason


def test_blocks_may_share_a_line_and_be_wrapped(tmp_path: Path) -> None:
    topics = (
        '<?xml version="1.0"?>\n<topics>\n# two\n<top><num>1</num><title>One?</title></top>'
        "<top><num>2</num><title>Two?</title></top>\n</topics>\n"
    )
    found = read(tmp_path, "1 0 a 1\n2 0 a 1\n", topics)
    assert [question.text for question in found.questions] == ["One?", "Two?"]


def test_a_line_between_blocks_is_not_dropped_in_silence(tmp_path: Path) -> None:
    found = read(tmp_path, "301 0 a 1\n302 0 a 1\n303 0 a 1\n", f"{SGML}303\tWho?\n")
    assert len(found.read) == 2
    [reason] = found.reasons
    assert "topics.tsv:13: stands between the <top> blocks" in reason


@pytest.mark.parametrize("query", ["<2>", "<top", "<topic>", "<!x", "<doc>"])
def test_a_first_topic_whose_id_begins_like_a_tag_swallows_no_other(
    tmp_path: Path, query: str
) -> None:
    found = read(tmp_path, "301 0 a:0 1\n302 0 b:0 1\n", f"# topics\n{query}\tWho?\n{TOPICS}")
    assert [each.question.text for each in found.read] == [CRIME, POLIO]
