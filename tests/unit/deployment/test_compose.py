"""docker-compose.yml: what would run, in which order, and who could reach it."""

import re
import shlex
from typing import Any

import pytest
import yaml
from celery.beat import PersistentScheduler

from pipeline.settings import Settings
from pipeline.settings_sources import Environment
from tests.unit.deployment.commands import celery_options, is_recallwatch
from tests.unit.deployment.files import (
    ENVIRONMENT,
    MissingVariableError,
    compose,
    dockerfile,
    interpolate,
    read,
)
from workers.queues import QUEUES
from workers.schedule import SWEEP_EVERY

SERVICES: dict[str, dict[str, Any]] = compose()["services"]
SERVERS = ("postgres", "valkey")
OURS = tuple(name for name in SERVICES if name not in SERVERS)
LASTING = tuple(name for name in SERVICES if name not in {"migrate", "cli"})
UNITS = {"s": 1, "m": 60, "h": 3600}

SERVICE_KEYS = {
    "image", "build", "command", "entrypoint", "environment", "configs", "volumes", "tmpfs",
    "depends_on", "healthcheck", "restart", "stop_grace_period", "read_only", "cap_drop",
    "security_opt", "logging", "profiles", "shm_size",
}  # fmt: skip
CHECK_KEYS = {"test", "interval", "timeout", "retries", "start_period", "start_interval"}
"""What of the Compose specification the file uses: Compose refuses a key that it does not know."""


def words(name: str) -> list[str]:
    command = SERVICES[name]["command"]
    return command if isinstance(command, list) else shlex.split(command)


def celery_services(subcommand: str) -> dict[str, dict[str, Any]]:
    """Return service -> options of those that run `celery <subcommand>`."""
    started = [name for name in OURS if SERVICES[name].get("command", "").startswith("celery ")]
    parsed = {name: celery_options(words(name)) for name in started}
    return {name: options for name, (found, options) in parsed.items() if found == subcommand}


def seconds(text: str) -> int:
    return sum(int(n) * UNITS[unit] for n, unit in re.findall(r"(\d+)([smh])", text))


def test_every_key_is_one_that_compose_knows() -> None:
    file = compose()
    plain = {key for key in file if not key.startswith("x-")}
    assert plain == {"name", "services", "configs", "volumes"}
    for service in SERVICES.values():
        assert set(service) <= SERVICE_KEYS
        assert set(service.get("healthcheck", {})) <= CHECK_KEYS
        assert "image" in service


def test_each_queue_has_a_worker_service_of_its_own() -> None:
    workers = celery_services("worker")
    assert sorted(o["queues"] for o in workers.values()) == sorted([queue] for queue in QUEUES)
    for name, options in workers.items():
        assert options["queues"] == [name]
        assert options["concurrency"] >= 1


def test_exactly_one_beat_runs() -> None:
    (beat,) = celery_services("beat")
    assert SERVICES[beat].get("scale", 1) == 1
    assert "deploy" not in SERVICES[beat]
    assert not any(options["beat"] for options in celery_services("worker").values())


def test_beat_keeps_its_schedule_in_a_volume() -> None:
    folder = celery_services("beat")["beat"]["schedule"].rpartition("/")[0]
    (volume,) = SERVICES["beat"]["volumes"]
    assert volume.split(":") == ["beat", folder]
    assert any(f"--owner recallwatch --group recallwatch {folder}" in run for run in dockerfile())


def test_nothing_of_ours_starts_before_the_servers_answer_and_the_tables_are_there() -> None:
    assert is_recallwatch(words("migrate"))
    assert words("migrate")[1:] == ["migrate"]
    assert SERVICES["migrate"]["restart"] == "no"
    assert SERVICES["migrate"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    for name in set(OURS) - {"migrate"}:
        assert SERVICES[name]["depends_on"] == {
            "postgres": {"condition": "service_healthy"},
            "valkey": {"condition": "service_healthy"},
            "migrate": {"condition": "service_completed_successfully"},
        }


@pytest.mark.parametrize("name", LASTING)
def test_what_lasts_is_checked_restarted_and_rotates_its_log(name: str) -> None:
    service = SERVICES[name]
    assert service["restart"] == "unless-stopped"
    assert set(service["logging"]["options"]) == {"max-size", "max-file"}
    check = service["healthcheck"]
    assert seconds(check["timeout"]) <= seconds(check["interval"])
    assert isinstance(check["test"], str)  # a string is run by a shell: it may hold a pipe


def test_a_workers_check_asks_the_worker_in_the_same_container() -> None:
    for name, options in celery_services("worker").items():
        test = SERVICES[name]["healthcheck"]["test"]
        assert test.endswith(f" {name}@$(hostname)")
        subcommand, asked = celery_options(shlex.split(test.replace("$(hostname)", "box")))
        assert (subcommand, asked["command"]) == ("inspect", "ping")
        node, _, host = options["hostname"].partition("@")
        assert asked["destination"] == [f"{node}@box"]
        assert host
        assert asked["timeout"] < seconds(SERVICES[name]["healthcheck"]["timeout"])


def test_beat_counts_as_ill_only_after_it_has_missed_a_write_of_its_schedule() -> None:
    minutes = re.search(
        r'-name "beat-schedule\*" -mmin -(\d+) ', SERVICES["beat"]["healthcheck"]["test"]
    )
    assert minutes is not None
    assert int(minutes[1]) * 60 > PersistentScheduler.sync_every + SWEEP_EVERY


def test_a_worker_has_time_to_finish_its_longest_task_when_it_is_stopped() -> None:
    from workers.app import _configuration  # noqa: PLC0415 - reads the settings when it is imported

    longest = _configuration(Settings())["task_time_limit"]
    for name in celery_services("worker"):
        assert seconds(SERVICES[name]["stop_grace_period"]) > longest


def test_no_port_is_reachable_from_outside() -> None:
    for name, service in SERVICES.items():
        assert "network_mode" not in service
        for port in service.get("ports", []):
            assert str(port).startswith("127.0.0.1:"), name


@pytest.mark.parametrize("name", ENVIRONMENT)
@pytest.mark.parametrize("value", [None, ""])
def test_a_password_that_is_not_set_stops_everything(name: str, value: str | None) -> None:
    others = {key: given for key, given in ENVIRONMENT.items() if key != name}
    with pytest.raises(MissingVariableError, match=name):
        compose(others if value is None else others | {name: value})


def test_both_servers_ask_for_their_password() -> None:
    one, two = ENVIRONMENT.values()
    assert SERVICES["postgres"]["environment"]["POSTGRES_PASSWORD"] == one
    assert "POSTGRES_HOST_AUTH_METHOD" not in SERVICES["postgres"]["environment"]
    command = words("valkey")
    assert command[command.index("--requirepass") + 1] == two
    for name in OURS:
        assert f":{one}@postgres:" in SERVICES[name]["environment"]["DATABASE_URL"]
        assert f":{two}@valkey:" in SERVICES[name]["environment"]["REDIS_URL"]


def test_no_password_stands_in_the_file() -> None:
    assert not re.search(r"\$\{\w*PASSWORD\b(?!:\?)", read("docker-compose.yml"))
    unresolved = yaml.safe_load(read("docker-compose.yml"))["services"]
    for service in unresolved.values():
        for name, value in service.get("environment", {}).items():
            if re.search(r"PASSWORD|AUTH|KEY|WEBHOOK", name):
                assert re.fullmatch(r"\$\{\w+:([?].+|-)\}", value), name
            assert not re.search(r"://[^/@:]*:[^$]", value), name


def test_the_example_file_names_every_required_variable_and_gives_none_a_value() -> None:
    lines = [line for line in read(".env.example").splitlines() if line and line[0] != "#"]
    names = {line.removesuffix("=") for line in lines}
    assert all(line.endswith("=") for line in lines)
    assert names >= set(ENVIRONMENT)
    optional = set(re.findall(r"^#(\w+)=", read(".env.example"), flags=re.MULTILINE))
    in_file = set(re.findall(r"\$\{(\w+)", read("docker-compose.yml")))
    assert names | optional <= in_file


def test_every_setting_in_the_environment_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OURS:
        for key, value in SERVICES[name]["environment"].items():
            monkeypatch.setenv(key, value)
        environment = Environment()
        assert environment.faults() == []
        assert Settings(**environment()).log.level == "info"


def test_the_queue_evicts_nothing_and_survives_a_restart() -> None:
    command = words("valkey")
    options = dict(zip(command[1::2], command[2::2], strict=True))
    assert options["--maxmemory-policy"] == "noeviction"
    assert options["--appendonly"] == "yes"
    assert SERVICES["valkey"]["volumes"] == ["valkey:/data"]


def test_ours_may_write_nowhere_but_where_they_must() -> None:
    for name in OURS:
        assert SERVICES[name]["read_only"] is True
        assert SERVICES[name]["tmpfs"] == ["/tmp:mode=1777"]  # noqa: S108 - in the container
        assert SERVICES[name]["cap_drop"] == ["ALL"]
        assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]


def test_all_that_is_referred_to_is_declared() -> None:
    file = compose()
    for service in SERVICES.values():
        assert {volume.partition(":")[0] for volume in service.get("volumes", [])} <= set(
            file["volumes"]
        )
        assert {config["source"] for config in service.get("configs", [])} <= set(file["configs"])
        for other, how in service.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in SERVICES[other]


def test_the_command_line_is_there_but_not_started() -> None:
    assert SERVICES["cli"]["entrypoint"] == ["recallwatch"]
    assert SERVICES["cli"]["profiles"] == ["cli"]
    assert [name for name, service in SERVICES.items() if "profiles" in service] == ["cli"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("$$(hostname)", "$(hostname)"),
        ("a${A}b", "a1b"),
        ("${A:?why}", "1"),
        ("${B:-2m}", "2m"),
        ("${A:-2}", "1"),
        ("${B:-}", ""),
    ],
)
def test_variables_are_put_in_as_compose_does(text: str, expected: str) -> None:
    assert interpolate(text, {"A": "1", "B": ""}) == expected
