import json
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from pipeline.generation.base import Ask, SourceChunk
from pipeline.generation.requests import message_of, most_tokens_out
from pipeline.generation.sizes import size

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=2000)


def ask_of(text: str, questions: int = 1) -> Ask:
    return Ask([SourceChunk("d:0", text)], ["factual"] * questions)


@given(TEXTS, st.integers(1, 3))
def test_what_is_expected_is_below_what_is_possible(text: str, questions: int) -> None:
    about, most = size(ask_of(text, questions))

    assert 0 < about.input_tokens <= most.input_tokens
    assert 0 < about.output_tokens <= most.output_tokens


@given(TEXTS)
def test_no_request_can_have_more_tokens_than_its_most_has_bytes(text: str) -> None:
    ask = ask_of(text)
    sent = json.dumps(message_of(ask, "claude-haiku-4-5"), ensure_ascii=False).encode()

    _, most = size(ask)

    assert most.input_tokens > len(sent)
    assert most.output_tokens == most_tokens_out(ask)


def test_a_text_that_normalization_lengthens_is_counted_as_long_as_it_becomes() -> None:
    ligature = "\ufdfa"  # one character of 3 bytes, 18 characters of 33 bytes after NFKC
    _, plain = size(ask_of("a" * 3))

    _, most = size(ask_of(ligature * 1000))

    assert most.input_tokens - plain.input_tokens >= 33_000 - 3


def test_the_real_prompt_is_counted_not_the_chunk_alone() -> None:
    about, _ = size(ask_of(""))

    assert about.input_tokens > 1000


def test_each_language_s_characters_count_as_tokenizers_take_them() -> None:
    empty, english, chinese = (size(ask_of(t))[0] for t in ("", "word " * 700, "字" * 1000))

    assert 900 <= english.input_tokens - empty.input_tokens <= 1100
    assert chinese.input_tokens - empty.input_tokens == 1000


def test_an_estimate_loads_no_sdk() -> None:
    code = "import sys, pipeline.generation.sizes; sys.exit('anthropic' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
