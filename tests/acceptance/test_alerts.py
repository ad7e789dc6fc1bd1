"""Alerts as a team gets them: real commands and workers, and a Slack on this machine."""

from collections.abc import Iterator

import pytest

from cli.embedded.stack import Servers
from tests.acceptance import guides
from tests.acceptance.command import Project, Record, wait_until
from tests.acceptance.conftest import standing_project
from tests.loopback.hook_server import HookServer, answer

SETTINGS = """
[alerts.channels.team]
kind = "slack"
url_env = "TEAM_WEBHOOK"

[alerts.channels.nobody]
kind = "slack"
url_env = "UNSET_WEBHOOK"
on = ["golden_stale"]
"""


@pytest.fixture(scope="module")
def slack() -> Iterator[HookServer]:
    with HookServer() as server:
        yield server


@pytest.fixture(scope="module")
def told(servers: Servers, slack: HookServer) -> Iterator[Project]:
    """Give a project with a corpus, a golden set and a first run, whose team is told."""
    environment = {"TEAM_WEBHOOK": slack.url(), "NO_PROXY": "127.0.0.1"}
    with standing_project(servers, environment) as project:
        project.write_settings(SETTINGS)
        project.run("corpus", "load", project.write("chunks.jsonl", guides.chunks()))
        project.run("golden", "import", project.write("golden.jsonl", guides.questions()))
        project.write("spoiled.jsonl", guides.spoiled_chunks())
        project.evaluate("vector", "fulltext")
        yield project


def alerts(project: Project) -> list[Record]:
    """Return what `alerts list` says, oldest first."""
    return project.json_rows("alerts", "list")[::-1]


def test_each_regressed_run_is_posted_once_and_so_is_its_recovery(
    told: Project, slack: HookServer
) -> None:
    assert slack.posted == []
    told.run("corpus", "load", "spoiled.jsonl")
    vector, fulltext = told.evaluate("vector", "fulltext", code=1)

    # The command waited for it.
    (posted,) = slack.posted
    assert (vector["verdict"], fulltext["verdict"]) == ("regressed", "ok")
    message = posted.body.decode()
    assert posted.json()["text"].startswith("default / vector: retrieval regressed; ")
    assert "Worst lost questions" in message
    assert "95 % interval" in message
    assert "texts or vectors: exact search finds less too" in message
    assert "recallwatch eval --set default --strategy vector -k 5 --level chunk" in message

    (still,) = told.evaluate("vector")
    assert still["verdict"] == "ok"
    assert len(slack.posted) == 1

    told.run("corpus", "load", "chunks.jsonl")
    (back,) = told.evaluate("vector")
    assert back["verdict"] == "improved"
    assert len(slack.posted) == 2
    assert "default / vector: retrieval recovered" in slack.posted[1].json()["text"]

    assert [(a["run_id"], a["channel"], a["kind"], a["state"]) for a in alerts(told)] == [
        (vector["id"], "team", "regressed", "sent"),
        (back["id"], "team", "recovered", "sent"),
    ]


def test_what_may_have_arrived_is_shown_and_only_a_person_sends_it_again(
    told: Project, slack: HookServer
) -> None:
    before = len(slack.posted)
    slack.script = [answer(500)]
    told.run("corpus", "load", "spoiled.jsonl")
    told.evaluate("vector", code=1)

    newest = alerts(told)[-1]
    assert (newest["state"], len(slack.posted)) == ("unknown", before + 1)
    assert "answered 500" in newest["error"]
    unknown = told.json_rows("alerts", "list", "--state", "unknown")
    assert [alert["id"] for alert in unknown] == [newest["id"]]
    seen = " ".join(told.run("doctor").out.split())
    assert "the unknown may or may not have arrived" in seen
    assert "channels note alerts.channels.nobody: environment UNSET_WEBHOOK is not set" in seen
    told.evaluate("fulltext")
    assert len(slack.posted) == before + 1

    said = told.run("alerts", "resend", newest["id"]).out
    assert said == f"alert {newest['id']} goes out when a worker runs\n"
    wait_until(lambda: alerts(told)[-1]["state"] == "sent")
    assert len(slack.posted) == before + 2
    assert slack.posted[-1].body == slack.posted[-2].body
    again = told.fails("alerts", "resend", 999)
    assert again.startswith("alert 999 is not there or still on its way")


def test_a_channel_can_be_tried(told: Project, slack: HookServer) -> None:
    before = len(slack.posted)

    assert told.run("alerts", "test", "team").out == "sent to team\n"

    assert len(slack.posted) == before + 1
    assert "this is a test" in slack.posted[-1].body.decode()
    slack.script = [answer(404, b"no_service")]
    said = told.fails("alerts", "test", "team", code=2)
    assert said == "channel team: 127.0.0.1 answered 404 (no_service): check the channel's URL"
    assert "UNSET_WEBHOOK is not set" in told.fails("alerts", "test", "nobody")
    assert told.fails("alerts", "test", "nope") == (
        "no channel 'nope' in [alerts.channels]; there are: team, nobody"
    )
