"""The request that an ask becomes: a message of the Messages API with one forced, strict tool."""

from typing import TYPE_CHECKING, Any

from pipeline.generation.base import Ask
from pipeline.generation.prompts import prompt_of

if TYPE_CHECKING:
    from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

TOOL = "write_questions"

_FRAME_TOKENS = 200
_QUESTION_TOKENS = 400


def most_tokens_out(ask: Ask) -> int:
    """Return the tokens that an answer may have: five times what questions of 25 words take.

    An answer that is cut short is paid for and of no use.
    """
    return _FRAME_TOKENS + _QUESTION_TOKENS * len(ask.categories)


def message_of(ask: Ask, model: str) -> "MessageCreateParamsNonStreaming":
    """Return the parameters of the message.

    Thinking is off: newer models think unless told otherwise, which cannot go with a forced tool,
    and is billed.
    """
    prompt = prompt_of(ask)
    return {
        "model": model,
        "max_tokens": most_tokens_out(ask),
        "system": prompt.system,
        "messages": [{"role": "user", "content": prompt.user}],
        "thinking": {"type": "disabled"},
        "tools": [
            {
                "name": TOOL,
                "description": "Hands in the questions that were written.",
                "strict": True,
                "input_schema": schema_for(ask),
            }
        ],
        "tool_choice": {"type": "tool", "name": TOOL, "disable_parallel_tool_use": True},
    }


def schema_for(ask: Ask) -> dict[str, Any]:
    """Return the JSON schema of the tool's input.

    It keeps to what strict tools take: no lengths, no ranges; `replies` checks the rest.
    """
    question = _object(
        text={"type": "string", "description": "the question"},
        category={"type": "string", "enum": sorted(set(ask.categories))},
        excerpts={
            "type": "array",
            "description": "the numbers of the excerpts that the answer needs",
            "items": {"type": "integer", "enum": list(range(1, len(ask.chunks) + 1))},
        },
    )
    return _object(questions={"type": "array", "items": question})


def _object(**properties: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
