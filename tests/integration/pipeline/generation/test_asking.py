"""One request, from an ask to an answer, through the real SDK."""

import pytest
from pydantic import SecretStr

from pipeline.errors import SettingsError
from pipeline.generation.anthropic import ClaudeGenerator
from pipeline.generation.base import Answer, Ask, Draft, Usage
from pipeline.generation.build import build_generator
from pipeline.generation.settings import GenerationSettings
from pipeline.types import Kind
from tests.integration.pipeline.generation.conftest import (
    ASK,
    KEY,
    RETURNS,
    WARRANTY,
    Build,
    settings_for,
)
from tests.loopback.anthropic_server import AnthropicServer, key_of, message, raw

WRITTEN = {"text": "How long is it covered?", "category": "factual", "excerpts": [1]}


def test_questions_come_back_with_their_category_their_chunks_and_what_they_cost(
    server: AnthropicServer, build: Build
) -> None:
    server.script = [
        message(
            questions=[WRITTEN, {**WRITTEN, "category": "procedural"}],
            usage={"input_tokens": 812, "output_tokens": 91},
        )
    ]

    answer = build().ask(ASK)

    assert answer == Answer(
        [Draft("How long is it covered?", c, [1]) for c in ("factual", "procedural")],
        Usage(812, 91),
    )


def test_one_request_forces_one_strict_tool_with_the_key_and_thinks_not(
    server: AnthropicServer, build: Build
) -> None:
    build(model="claude-sonnet-4-6").ask(ASK)

    (request,) = server.requests
    assert (request.path, key_of(request)) == ("/v1/messages", KEY)
    assert request.body["model"] == "claude-sonnet-4-6"
    (tool,) = request.body["tools"]
    assert tool["strict"] is True
    assert request.body["tool_choice"] == {
        "type": "tool",
        "name": tool["name"],
        "disable_parallel_tool_use": True,
    }
    assert request.body["thinking"] == {"type": "disabled"}


def test_a_question_of_several_chunks_names_each_that_it_needs_once(
    server: AnthropicServer, build: Build
) -> None:
    server.write = lambda _: [{"text": "Q?", "category": "comparison", "excerpts": [2, 1, 2]}]

    (draft,) = build().ask(Ask([WARRANTY, RETURNS], ["comparison"])).drafts

    assert draft.chunk_numbers == [1, 2]


def test_an_unanswerable_question_has_no_chunk_whatever_the_model_says(
    server: AnthropicServer, build: Build
) -> None:
    server.write = lambda _: [{"text": "Who owns it?", "category": "factual", "excerpts": [1]}]

    answer = build().ask(Ask([WARRANTY], ["factual"], kind=Kind.UNANSWERABLE))

    assert answer.drafts == [Draft("Who owns it?", "factual", [])]


def test_the_tokens_of_prompt_caches_are_told_apart_as_they_are_priced(
    server: AnthropicServer, build: Build
) -> None:
    server.script = [
        message(
            usage={
                "input_tokens": 10,
                "output_tokens": 20,
                "cache_creation_input_tokens": 700,
                "cache_read_input_tokens": 300,
                "cache_creation": {
                    "ephemeral_5m_input_tokens": 600,
                    "ephemeral_1h_input_tokens": 100,
                },
            }
        )
    ]

    assert build().ask(ASK).usage == Usage(10, 20, 600, 100, 300)


@pytest.mark.parametrize(
    ("stop_reason", "said"),
    [
        ("refusal", "the model declined to write questions"),
        ("max_tokens", "cut short at its largest length"),
        ("model_context_window_exceeded", "fills the model's window"),
    ],
)
def test_an_answer_that_stopped_early_is_paid_for_and_holds_no_question(
    server: AnthropicServer, build: Build, stop_reason: str, said: str
) -> None:
    server.script = [
        message(stop_reason=stop_reason, usage={"input_tokens": 5, "output_tokens": 6})
    ]

    answer = build().ask(ASK)

    assert (answer.drafts, answer.usage) == ((), Usage(5, 6))
    assert said in str(answer.refusal)


def test_fewer_questions_than_asked_for_are_taken_and_none_is_said(
    server: AnthropicServer, build: Build
) -> None:
    server.script = [message(questions=[WRITTEN]), message(questions=[])]

    few, none = build().ask(ASK), build().ask(ASK)

    assert (len(few.drafts), few.refusal) == (1, None)
    assert (len(none.drafts), none.refusal) == (0, "the model found nothing to ask about")


def test_another_server_key_or_token_of_the_sdk_s_own_environment_is_not_used(
    server: AnthropicServer, build: Build, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-other")
    monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "other-token")

    build().ask(ASK)

    assert key_of(server.requests[0]) == KEY
    assert "other" not in str(server.requests[0].headers)


def test_a_server_on_this_machine_is_asked_without_a_key(server: AnthropicServer) -> None:
    build_generator(settings_for(server), None).ask(ASK)

    assert key_of(server.requests[0]) == "no-key"


@pytest.mark.parametrize(
    ("key", "base_url", "said"),
    [
        (None, None, "ANTHROPIC_API_KEY is not set: api.anthropic.com needs one"),
        ("  ", "http://gateway.example.org", "ANTHROPIC_API_KEY is not set: gateway.example.org"),
        ("sk-é", None, "ANTHROPIC_API_KEY holds characters that no key has"),
    ],
)
def test_a_key_that_cannot_be_sent_is_refused_before_anything_is(
    key: str | None, base_url: str | None, said: str
) -> None:
    secret = None if key is None else SecretStr(key)

    with pytest.raises(SettingsError, match=said):
        ClaudeGenerator(GenerationSettings(base_url=base_url), secret)


def test_a_server_below_a_path_is_asked_there(server: AnthropicServer, build: Build) -> None:
    server.default = raw(404, b"{}")

    with pytest.raises(Exception, match="404"):
        build(base_url=f"{server.url}/proxy/anthropic").ask(ASK)

    assert server.requests[0].path == "/proxy/anthropic/v1/messages"
