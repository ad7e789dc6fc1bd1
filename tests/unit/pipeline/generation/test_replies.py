import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.generation.base import Ask, SourceChunk
from pipeline.generation.replies import read_message
from pipeline.generation.requests import TOOL
from pipeline.providers.replies import MalformedReplyError
from pipeline.safe_text import clean

ASK = Ask([SourceChunk("d:0", "a"), SourceChunk("d:1", "b")], ["factual", "procedural"])

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
USAGE = {"input_tokens": 7, "output_tokens": 8}


def message(tool_input: object, **more: object) -> dict[str, Any]:
    call = {"type": "tool_use", "id": "t", "name": TOOL, "input": tool_input}
    whole = {"type": "message", "content": [call], "stop_reason": "tool_use", "usage": USAGE}
    return whole | more


def question(text: object = "Q?", **more: object) -> dict[str, object]:
    return {"text": text, "category": "factual", "excerpts": [1]} | more


@given(VALUES)
@example([[]] * 3)
@example(message({"questions": []}, usage=None))
@example(message({"questions": []}, content={}))
def test_any_reply_is_an_answer_or_malformed(value: object) -> None:
    with suppress(MalformedReplyError):
        assert read_message(value, ASK).usage.input_tokens >= 0


@given(st.lists(st.dictionaries(st.sampled_from(["text", "category", "excerpts"]), VALUES)))
def test_whatever_the_tool_is_given_only_drafts_in_the_form_come_out(questions: object) -> None:
    answer = read_message(message({"questions": questions}), ASK)

    for draft in answer.drafts:
        assert draft.category in ASK.categories
        assert set(draft.chunk_numbers) <= {1, 2}
        assert draft.chunk_numbers
        draft.text.encode()
    assert (answer.refusal is None) == bool(answer.drafts)
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (7, 8)


@given(st.text())
def test_the_words_of_a_question_come_through_with_single_blanks(text: str) -> None:
    answer = read_message(message({"questions": [question(f" {text}\n")]}), ASK)

    if answer.refusal is None:
        assert answer.drafts[0].text == " ".join(text.split())
    else:
        assert "\0" in text or any("\ud800" <= character <= "\udfff" for character in text)


def test_a_blank_question_comes_through_for_the_filters_to_count() -> None:
    assert read_message(message({"questions": [question(" ")]}), ASK).drafts[0].text == ""


def test_what_the_api_may_add_is_passed_over() -> None:
    thinking = {"type": "thinking", "thinking": "...", "signature": "x"}
    whole = message({"questions": [question()]}, container=None, diagnostics={"a": 1})
    whole["content"] = [thinking, {"type": "new_block"}, *whole["content"]]
    whole["usage"] = USAGE | {"service_tier": "standard", "server_tool_use": None}

    assert len(read_message(whole, ASK).drafts) == 1


@pytest.mark.parametrize("name", ["input_tokens", "output_tokens"])
def test_a_message_that_does_not_say_what_it_cost_is_malformed(name: str) -> None:
    usage = {key: tokens for key, tokens in USAGE.items() if key != name}

    with pytest.raises(MalformedReplyError, match=f"usage.{name}: Field required"):
        read_message(message({"questions": []}, usage=usage), ASK)


def test_no_refusal_quotes_what_the_model_wrote() -> None:
    canary = "canary-text"
    broken: list[object] = [
        {"questions": [question(category=canary)]},
        {"questions": [question(excerpts=[canary])]},
        {"questions": [question(text=[canary])]},
        {"questions": [question() | {canary: 1}]},
        {"questions": canary},
        {"questions": [], canary: 1},
        canary,
    ]

    for tool_input in broken:
        assert canary not in str(read_message(message(tool_input), ASK).refusal)


@given(VALUES, st.text(min_size=1))
@example({}, "\ud800\x00\x1b[31m" * 1000)
def test_whatever_a_reply_calls_its_parts_what_is_said_of_it_is_short_and_can_be_stored(
    value: object, name: str
) -> None:
    for tool_input in ({name: value}, {"questions": [{name: value}]}, {"questions": value}):
        refusal = read_message(message(tool_input), ASK).refusal or ""
        assert clean(refusal) == refusal
        assert len(refusal) < 200


def test_an_answer_survives_json() -> None:
    whole = json.loads(json.dumps(message({"questions": [question("Wie lange gilt es? ✓")]})))

    assert read_message(whole, ASK).drafts[0].text == "Wie lange gilt es? ✓"
