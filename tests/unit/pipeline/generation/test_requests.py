from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from pipeline.generation.base import Ask, Category, SourceChunk
from pipeline.generation.requests import TOOL, message_of, most_tokens_out, schema_for

# By Anthropic's page on structured outputs, "JSON Schema limitations".
TAKEN = {"type", "properties", "required", "additionalProperties", "items", "enum", "description"}

ASKS = st.builds(
    Ask,
    st.lists(st.builds(SourceChunk, st.just("d:0"), st.text(max_size=50)), min_size=1, max_size=4),
    st.lists(st.sampled_from([*Category, "legal"]), min_size=1, max_size=5),
)


def schemas_in(schema: dict[str, object]) -> Iterator[dict[str, object]]:
    """Yield a schema and all below it."""
    yield schema
    properties = schema.get("properties", {})
    assert isinstance(properties, dict)
    below = [*properties.values(), *filter(None, [schema.get("items")])]
    for part in below:
        yield from schemas_in(part)


@given(ASKS)
def test_the_schema_keeps_to_what_strict_tools_take(ask: Ask) -> None:
    for schema in schemas_in(schema_for(ask)):
        assert schema.keys() <= TAKEN
        if schema["type"] == "object":
            assert schema["additionalProperties"] is False
            properties = schema["properties"]
            assert isinstance(properties, dict)
            assert schema["required"] == list(properties)


@given(ASKS)
def test_only_categories_that_were_asked_for_and_chunks_that_are_shown_can_be_named(
    ask: Ask,
) -> None:
    question = schema_for(ask)["properties"]["questions"]["items"]["properties"]

    assert set(question["category"]["enum"]) == set(ask.categories)
    assert question["excerpts"]["items"]["enum"] == list(range(1, len(ask.chunks) + 1))


@given(ASKS)
def test_asks_of_the_same_categories_in_any_order_share_a_schema(ask: Ask) -> None:
    turned = Ask(ask.chunks, list(reversed(ask.categories)))

    assert schema_for(turned) == schema_for(ask)


def test_the_tool_is_forced_and_each_question_has_room() -> None:
    one, three = (Ask([SourceChunk("d:0", "a")], ["factual"] * n) for n in (1, 3))

    message = message_of(three, "some-model")

    assert message["model"] == "some-model"
    assert message.get("tool_choice") == {
        "type": "tool",
        "name": TOOL,
        "disable_parallel_tool_use": True,
    }
    assert message["max_tokens"] == most_tokens_out(three) > most_tokens_out(one)
    assert "temperature" not in message  # newer versions of the API refuse it
