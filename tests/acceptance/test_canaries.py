"""Every secret has a value of its own; none of them turns up where people or programs look.

One project goes through what leaks as a rule: servers that quote the request in their refusals,
servers that are not there, tracebacks, debug logs. Only what alphanumerical core a value has is
looked for: it survives percent-encoding, JSON and repr, and half a secret is a leak as well.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
import redis

from cli.embedded.stack import Servers
from cli.embedded.status import inspect
from pipeline.settings import ENVIRONMENT_ONLY, Settings
from tests.acceptance import guides
from tests.acceptance.command import Finished, Project
from tests.acceptance.conftest import standing_project
from tests.loopback import hook_server, openai_server
from tests.loopback.hook_server import HookServer
from tests.loopback.openai_server import OpenAIServer, vectors
from tests.loopback.smtp_server import SMTPServer

CORES = {
    name: f"cnry{name}x4711"
    for name in (
        "database", "corpus", "broker", "openai", "anthropic", "voyage", "cohere", "tei", "slack",
        "hook", "hookkey", "smtp", "search",
    )
}  # fmt: skip

ODD = "/+@ %:é"
"""What needs escaping in a URL."""

SETTINGS = """
[embedding]
provider = "openai"
model = "made-up"
base_url = "{provider}"
attempts = 1

[strategies.shop]
kind = "http"
url = "{search}"
key_env = "SEARCH_KEY"

[log]
level = "debug"

[alerts.channels.team]
kind = "slack"
url_env = "SLACK_WEBHOOK_URL"

[alerts.channels.program]
kind = "webhook"
url_env = "HOOK_URL"
secret_env = "HOOK_KEY"

[alerts.channels.mail]
kind = "email"
host = "127.0.0.1"
port = {smtp}
security = "none"
user = "recallwatch"
password_env = "SMTP_PASSWORD"
sender = "recallwatch@example.org"
recipients = ["search@example.org"]
"""


@dataclass
class Story:
    """What the project did, with all that came out of it."""

    project: Project
    reports: Path
    finished: list[Finished] = field(default_factory=list)
    arguments: list[str] = field(default_factory=list)
    posted: str = ""
    rows: str = ""
    cached: str = ""

    def run(self, *words: object, code: int = 0, **environment: str) -> Finished:
        """Run a command that says all that it can say."""
        done = self.project.run("-vv", *words, code=code, **environment)
        self.finished.append(done)
        self.arguments += [" ".join(p.cmdline()) for p in self.project.processes()]
        return done


def secret(name: str) -> str:
    return CORES[name] + ODD


def quoting_provider(exchange: openai_server.Exchange) -> None:
    """Refuse the key as badly behaved servers do, quoting all that came in."""
    said = f"Incorrect API key: {exchange.request.headers['authorization']}"
    body = json.dumps({"error": {"message": said, "code": None, "type": "error"}}).encode()
    exchange.send(401, body, {"Content-Type": "application/json"})


def quoting_hook(exchange: hook_server.Exchange) -> None:
    """Refuse the URL, quoting it as it came and decoded."""
    body = f"no such hook: {exchange.handler.path} {exchange.handler.headers}".encode()
    hook_server.answer(404, body)(exchange)


@pytest.fixture(scope="module")
def story(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    reports = tmp_path_factory.mktemp("reports")
    refusal = f"535 wrong password: {secret('smtp').encode('ascii', 'ignore').decode()}"
    with (
        OpenAIServer() as provider,
        HookServer() as hook,
        SMTPServer({"AUTH": [refusal]}) as mail,
        standing_project(servers, _environment(hook)) as project,
    ):
        project.write_settings(
            SETTINGS.format(provider=provider.url, smtp=mail.port, search=hook.url("/search"))
        )
        told = Story(_with_passwords(project), reports)
        _tell(told, provider, hook)
        told.posted = "".join(f"{each.headers} {each.body!r}" for each in hook.posted)
        told.rows = "".join(_dumped(project.environment["DATABASE_URL"]))
        told.cached = "".join(_kept(project.environment["REDIS_URL"]))
        yield told


def _environment(hook: HookServer) -> Mapping[str, str]:
    return {
        "OPENAI_API_KEY": CORES["openai"],  # a header: no odd characters
        "ANTHROPIC_API_KEY": secret("anthropic"),
        "VOYAGE_API_KEY": secret("voyage"),
        "COHERE_API_KEY": secret("cohere"),
        "TEI_API_KEY": secret("tei"),
        "SEARCH_KEY": CORES["search"],
        "SLACK_WEBHOOK_URL": hook.url(f"/services/T0/B0/{quote(secret('slack'), safe='')}"),
        "HOOK_URL": hook.url(f"/hook?key={quote(secret('hook'), safe='')}"),
        "HOOK_KEY": secret("hookkey"),
        "SMTP_PASSWORD": secret("smtp").encode("ascii", "ignore").decode(),
        "NO_PROXY": "127.0.0.1",
    }


def _with_passwords(project: Project) -> Project:
    """Put passwords into the URLs; servers that ask for none take any."""
    url = project.environment["DATABASE_URL"]
    for name in ("database", "corpus"):
        with_password = url.replace("postgres@", f"postgres:{quote(secret(name), safe='')}@")
        project.environment[f"{name.upper()}_URL"] = with_password
    socket = str(inspect(project.state).servers.redis_url).removeprefix("unix://")
    password = quote(secret("broker"), safe="")
    project.environment["REDIS_URL"] = f"unix://default:{password}@{socket}"
    return project


def _tell(story: Story, provider: OpenAIServer, hook: HookServer) -> None:
    project = story.project
    chunks = project.write("chunks.jsonl", guides.chunks())
    story.run("corpus", "load", chunks)
    story.run("golden", "import", project.write("golden.jsonl", guides.questions()))
    story.run("eval", "-s", "vector", "-s", "fulltext")
    # The keys stand for other texts from here on: without what was judged nobody can know.
    with psycopg.connect(project.environment["DATABASE_URL"]) as connection:
        connection.execute("UPDATE recallwatch.judgment SET evidence_hash = NULL")
    spoiled = [chunk | {"content": "nothing"} for chunk in guides.chunks()[::2]]
    story.run("corpus", "load", project.write("spoiled.jsonl", spoiled))
    hook.default = quoting_hook
    story.run(
        "eval", "-s", "fulltext", "--junit", story.reports / "junit.xml", "--ci", code=1,
        GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(story.reports / "summary.md"),
    )  # fmt: skip
    provider.default = quoting_provider
    other = [{"question": "Is it cached?", "expected": {"kettle:0": 1}}]
    story.run("golden", "import", project.write("other.jsonl", other), "--set", "other")
    story.run("eval", "--set", "other", "-s", "vector", code=3)
    for channel in ("team", "program", "mail"):
        story.run("alerts", "test", channel, code=2)
    _look(story)
    _fail(story)
    provider.default = vectors()


def _look(story: Story) -> None:
    story.run("doctor", "--json", code=3)
    # The hook refuses it, and quotes its headers.
    story.run("strategies", "probe", "shop", "Is it cached?", code=3)
    story.run("eval", "-s", "shop", code=3)
    for words in (
        ("config", "show"), ("config", "show", "--json"), ("status", "--json"),
        ("runs", "list", "--json"), ("runs", "show", 1, "--json"),
        ("runs", "show", 4, "--failures"),
        ("runs", "export", 2, "--output", story.reports / "run.jsonl"),
        ("alerts", "list", "--json"),
    ):  # fmt: skip
        story.run(*words)


def _fail(story: Story) -> None:
    """Meet servers that are not there, URLs that are none, and a bug."""
    password = quote(secret("database"), safe="")
    dead = f"postgresql://someone:{password}@127.0.0.1:1/mine"
    broker = f"redis://:{quote(secret('broker'), safe='')}@127.0.0.1:1/0"
    story.run("runs", "list", code=2, DATABASE_URL=dead)
    story.run("eval", code=2, CORPUS_URL=dead)
    story.run("eval", "-s", "fulltext", code=2, REDIS_URL=broker)
    for name in ("DATABASE_URL", "CORPUS_URL", "REDIS_URL"):
        story.run("runs", "list", code=2, **{name: f"http://u:{password}@127.0.0.1/{password}"})
        scheme = "redis" if name == "REDIS_URL" else "postgresql"
        story.run("runs", "list", code=2, **{name: f"{scheme}://u:{secret('database')}@h"})


def _dumped(url: str) -> Iterator[str]:
    """Yield every row of every table of ours, and of the corpus, as text."""
    with psycopg.connect(url, autocommit=True) as conn:
        tables = conn.execute(
            "SELECT format('%I.%I', schemaname, tablename) FROM pg_tables"
            " WHERE schemaname LIKE 'recallwatch%'"
        ).fetchall()
        assert len(tables) > 10
        for (table,) in tables:
            for (row,) in conn.execute(f"SELECT t::text FROM {table} AS t".encode()):  # noqa: S608 - quoted
                yield row


def _kept(url: str) -> Iterator[str]:
    """Yield every key and value of Redis."""
    with redis.Redis.from_url(url) as client:
        for key in client.scan_iter():
            yield repr(key)
            yield repr(client.dump(key))


def leaked(text: str, but: str = "") -> list[str]:
    """Return which secrets stand in a text, whatever the case."""
    return [name for name, core in CORES.items() if core.lower() in text.lower() and name != but]


def test_there_is_a_canary_for_every_secret_setting() -> None:
    secrets = {
        name for name, one in Settings.model_fields.items() if "Secret" in str(one.annotation)
    }
    assert secrets == {*ENVIRONMENT_ONLY, "database_url", "corpus_url", "redis_url"}
    assert len(CORES) == len(secrets) + 4, (
        "a webhook, its key, a mailbox's password, a search's key"
    )


def test_no_command_says_a_secret(story: Story) -> None:
    for finished in story.finished:
        assert leaked(finished.out + finished.err) == [], finished.command
    said = " ".join(finished.out + finished.err for finished in story.finished)
    assert "is not accepted" in said
    assert "no such hook" in said
    assert "wrong password" in said
    assert "***" in said


def test_no_file_holds_a_secret(story: Story) -> None:
    read = [path for folder in (story.project.folder, story.reports)
            for path in folder.rglob("*") if path.is_file()]  # fmt: skip
    names = {path.name for path in read}
    assert {"worker.log", "junit.xml", "summary.md", "run.jsonl", "users.json"} <= names
    for path in read:
        assert leaked(path.read_bytes().decode("latin-1")) == [], path
        assert leaked(str(path)) == []


def test_no_row_of_the_database_holds_a_secret(story: Story) -> None:
    assert "no such hook" in story.rows
    assert "is not accepted" in story.rows
    assert leaked(story.rows) == []


def test_neither_queue_nor_cache_holds_a_secret(story: Story) -> None:
    assert "rw:vec:1:" in story.cached
    assert leaked(story.cached) == []


def test_no_command_line_shows_a_secret(story: Story) -> None:
    assert any("celery" in line for line in story.arguments)
    assert leaked("\n".join(story.arguments)) == []


def test_what_is_posted_holds_no_secret(story: Story) -> None:
    assert "retrieval regressed" in story.posted
    # The search asked with its key is at the hook's address, to quote it.
    assert leaked(story.posted, but="search") == []


def test_the_settings_do_not_show_their_secrets_by_themselves() -> None:
    values: dict[str, Any] = {name: secret("openai") for name in ENVIRONMENT_ONLY}
    values["slack_webhook_url"] = f"https://hooks.slack.com/services/{CORES['slack']}"
    values["database_url"] = f"postgresql://u:{CORES['database']}@h/d"
    values["corpus_url"] = f"postgresql://u:{CORES['corpus']}@h/d"
    values["redis_url"] = f"redis://:{CORES['broker']}@h"
    made = Settings(**values)
    shown = [repr(made), str(made), made.model_dump_json(), str(made.model_dump())]
    logging.getLogger("test").debug("%s", made)
    assert leaked("".join(shown)) == []
