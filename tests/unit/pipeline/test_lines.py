import gzip
import lzma
from pathlib import Path

import pytest

from pipeline.errors import InputError
from pipeline.lines import MAX_LINE_BYTES, read_lines

LFS_POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)


def refusal_of(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        list(read_lines(path))
    message = str(caught.value)
    assert len(message.splitlines()) == 1
    return message


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "golden.jsonl"


def test_blank_lines_are_skipped_and_still_counted(file: Path) -> None:
    file.write_bytes(b"\n  \t\r\nfirst\n\nsecond")
    assert [(number, text.strip()) for number, text in read_lines(file)] == [
        (3, "first"),
        (5, "second"),
    ]


def test_only_a_newline_ends_a_line(file: Path) -> None:
    file.write_bytes("a\u2028b\u0085c\x0bd\n".encode())
    assert list(read_lines(file)) == [(1, "a\u2028b\u0085c\x0bd\n")]


def test_a_byte_order_mark_is_dropped_at_the_start_of_the_file_only(file: Path) -> None:
    file.write_bytes("\ufeffa\n\ufeffb\n".encode())
    assert list(read_lines(file)) == [(1, "a\n"), (2, "\ufeffb\n")]


def test_a_gzip_file_is_told_by_its_first_bytes_not_its_name(file: Path) -> None:
    file.write_bytes(gzip.compress(b"\xef\xbb\xbfa\n") + gzip.compress(b"b\n"))
    assert list(read_lines(file)) == [(1, "a\n"), (2, "b\n")]


def test_a_plain_file_may_be_called_gz(tmp_path: Path) -> None:
    misnamed = tmp_path / "golden.jsonl.gz"
    misnamed.write_bytes(b"a\n")
    assert list(read_lines(misnamed)) == [(1, "a\n")]


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf", gzip.compress(b"", mtime=0)])
def test_a_file_without_text_has_no_lines(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    assert list(read_lines(file)) == []


def test_a_gzip_file_cut_short_is_refused_at_the_line_that_is_missing(file: Path) -> None:
    lines = b"".join(b'{"question": "number %d"}\n' % number for number in range(20_000))
    whole = gzip.compress(lines)
    file.write_bytes(whole[: len(whole) // 2])
    numbers: list[int] = []
    with pytest.raises(InputError, match="the gzip file is cut short or damaged") as caught:
        numbers.extend(number for number, _ in read_lines(file))
    assert str(caught.value).startswith(f"{file}:{numbers[-1] + 1}: ")


def test_a_gzip_file_cut_in_its_header_is_refused(file: Path) -> None:
    file.write_bytes(gzip.compress(b"a\n")[:5])
    assert refusal_of(file).startswith(f"{file}:1: the gzip file is cut short or damaged")


@pytest.mark.parametrize("position", [15, -6], ids=["data", "checksum"])
def test_a_gzip_file_with_a_flipped_byte_is_refused(file: Path, position: int) -> None:
    packed = bytearray(gzip.compress(b"one line of text\n" * 50))
    packed[position] ^= 0xFF
    file.write_bytes(packed)
    assert "the gzip file is cut short or damaged" in refusal_of(file)


def test_a_byte_that_is_not_utf_8_is_refused_with_its_line_and_place(file: Path) -> None:
    file.write_bytes(b"first\n" + "na\u00efve".encode("latin-1") + b"\n")
    assert refusal_of(file) == (
        f"{file}:2: byte 3 of the line (0xef) is not UTF-8: save the file as UTF-8"
    )


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be"]
)
def test_wide_encodings_are_refused_with_or_without_their_mark(file: Path, encoding: str) -> None:
    file.write_bytes('{"question": "Who?"}\n'.encode(encoding))
    assert refusal_of(file).startswith(f"{file}:1: this is UTF-16, UTF-32 or a binary file")


@pytest.mark.parametrize("mark", [b"\xff\xfe", b"\xfe\xff"])
def test_utf_16_without_a_single_latin_letter_is_still_recognised(file: Path, mark: bytes) -> None:
    file.write_bytes(mark + b"\x61\x62\x63\x64")
    assert refusal_of(file).startswith(f"{file}:1: this is UTF-16")


def test_a_binary_file_is_refused(file: Path) -> None:
    file.write_bytes(lzma.compress(b"a\n"))
    assert refusal_of(file).startswith(f"{file}:1: ")


def test_a_git_lfs_pointer_is_refused_with_the_command_that_fetches_the_file(file: Path) -> None:
    file.write_bytes(LFS_POINTER)
    assert refusal_of(file) == (
        f"{file}:1: this is a Git LFS pointer, not the file itself: run `git lfs pull`"
    )


def test_a_line_of_the_greatest_length_is_read_and_a_longer_one_refused(file: Path) -> None:
    file.write_bytes(b"a" * MAX_LINE_BYTES)
    assert [len(text) for _, text in read_lines(file)] == [MAX_LINE_BYTES]
    file.write_bytes(b"a\n" + b"b" * (MAX_LINE_BYTES + 1))
    assert refusal_of(file) == f"{file}:2: the line is longer than 16,777,216 bytes"


def test_a_small_gzip_file_that_unpacks_to_an_endless_line_is_refused(file: Path) -> None:
    file.write_bytes(gzip.compress(b" " * (2 * MAX_LINE_BYTES), compresslevel=1))
    assert refusal_of(file).startswith(f"{file}:1: the line is longer than")


def test_a_missing_file_is_refused_by_name(file: Path) -> None:
    assert refusal_of(file) == f"{file}: cannot be read: No such file or directory"


def test_a_folder_is_refused_by_name(tmp_path: Path) -> None:
    assert refusal_of(tmp_path) == f"{tmp_path}: cannot be read: Is a directory"
