"""Questions that a model writes: the real command and real workers over a loopback server."""

from collections.abc import Iterator
from typing import Any

import pytest

from cli.embedded.stack import Servers
from tests.acceptance import guides
from tests.acceptance.command import Project, wait_until
from tests.acceptance.conftest import standing_project
from tests.loopback.anthropic_server import AnthropicServer, Params, excerpts_in, hang

KEY = "sk-ant-test-of-the-acceptance"

SETTINGS = """
[generation]
base_url = "{url}"
min_characters = 20
timeout = 20.0

[generation.prices.claude-haiku-4-5]
input = 1.0
output = 5.0

[queue]
lease = 30
"""

FACTUAL = ("--category-mix", "factual=1")

PEOPLE_ASK = (
    ("warm water", "What gets dirt off it without harm?"),
    ("winter", "Can it stay outside when the cold season comes?"),
    ("receipt", "Mine is defective; how soon will you fix it?"),
    ("Children", "Is my seven year old son too young for this?"),
    ("price", "Do I pay extra for shipping?"),
)
"""A word of each chunk, and what a customer might ask of it."""


def write(params: Params) -> list[dict[str, Any]]:
    excerpt = excerpts_in(params)[0]
    (text,) = [text for word, text in PEOPLE_ASK if word in excerpt]
    return [{"text": text, "category": "factual", "excerpts": [1]}]


@pytest.fixture(scope="module")
def claude() -> Iterator[AnthropicServer]:
    with AnthropicServer(write) as server:
        yield server


@pytest.fixture(scope="module")
def project(servers: Servers, claude: AnthropicServer) -> Iterator[Project]:
    environment = {"ANTHROPIC_API_KEY": KEY, "NO_PROXY": "127.0.0.1", "USER": "ann"}
    with standing_project(servers, environment) as project:
        project.write_settings(SETTINGS.format(url=claude.url))
        project.run("corpus", "load", project.write("chunks.jsonl", guides.chunks()))
        yield project


def generate(project: Project, *options: object, code: int = 0) -> dict[str, Any]:
    return project.json("golden", "generate", *FACTUAL, *options, code=code)


def test_a_dry_run_says_what_it_would_cost_and_asks_nothing(
    project: Project, claude: AnthropicServer
) -> None:
    planned = project.run("golden", "generate", "--sample", 2, "--dry-run", ANTHROPIC_API_KEY="")

    assert len(planned.out.splitlines()) == 2
    assert "estimated cost: about $0.0" in planned.err
    assert claude.requests == []


def test_questions_are_proposed_with_what_they_cost_and_never_asked_for_twice(
    project: Project, claude: AnthropicServer
) -> None:
    made = generate(project, "--sample", 2, "--set", "shop", "--max-cost", 1)

    assert made["status"] == "completed"
    assert made["requests"] == {"answered": 2}
    assert sum(made["candidates"].values()) == 2
    assert made["candidates"].get("drafted", 0) == 0
    billed = sum(p.usage["input_tokens"] + 5 * p.usage["output_tokens"] for p in claude.paid)
    assert made["spent"] == pytest.approx(billed / 1_000_000)

    kept = project.json_rows("golden", "list", "--set", "shop", "--status", "proposed")
    assert len(kept) == made["candidates"].get("kept", 0) > 0
    assert {each["question"]["source"] for each in kept} == {"synthetic"}

    asked = len(claude.paid)
    generate(project, "--sample", 2, "--set", "shop")
    texts = [excerpts_in(p.params)[0] for p in claude.paid]
    assert len(texts) == len(set(texts)) == asked + 2


def test_a_generation_is_cancelled_shown_and_resumed(
    project: Project, claude: AnthropicServer
) -> None:
    claude.script = [hang()] * 2
    before = len(claude.requests)
    waiting = project.start("golden", "generate", "--sample", 4, "--set", "stopped", *FACTUAL)
    wait_until(lambda: len(claude.requests) > before)
    (newest, *_) = project.json_rows("golden", "generations", "list", "--set", "stopped")
    number = newest["generation"]
    cancelled = project.run("golden", "generations", "cancel", number)
    assert f"generation {number} is cancelled" in cancelled.out
    assert waiting.finish().code == 3
    shown = project.json("golden", "generations", "show", number)
    assert shown["status"] == "cancelled"
    claude.script = []

    wait_until(lambda: not project.json(
        "golden", "generations", "show", number)["requests"].get("asked"))  # fmt: skip
    resumed = project.json("golden", "generations", "resume", number)

    assert resumed["status"] == "completed"
    assert resumed["requests"].keys() == {"answered", "unknown"}, "what was not sent is sent now"


def test_what_cannot_be_is_said_in_a_line(project: Project) -> None:
    generate_words = ("golden", "generate", "--sample", 2)

    assert "above the cap" in project.fails(*generate_words, "--max-cost", "0.000001")
    assert "nothing to ask for" in project.run("golden", "generate", "--sample", 0, code=2).err
    assert "no category 'funny'" in project.run(
        *generate_words, "--category-mix", "funny=1", code=2).err  # fmt: skip
    assert "there is no generation 99" in project.fails("golden", "generations", "show", 99)
    assert "no chunk of tenant 'x'" in project.fails(*generate_words, "--tenant", "x")
    assert KEY not in project.run("golden", "generations", "list").out
