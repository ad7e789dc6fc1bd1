import os

import pytest

from cli.person import person, user


@pytest.fixture(autouse=True)
def _no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("LOGNAME", "USER", "LNAME", "USERNAME", "GITHUB_ACTOR", "GITLAB_USER_LOGIN",
             "GITHUB_RUN_ID", "CI_JOB_URL")  # fmt: skip
    for name in names:
        monkeypatch.delenv(name, raising=False)


def test_a_person_is_who_runs_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "ann")

    assert user() == person() == "ann"


def test_in_a_ci_job_it_is_who_started_that(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "runner")
    monkeypatch.setenv("GITLAB_USER_LOGIN", "ann")
    monkeypatch.setenv("CI_JOB_URL", "job/7")

    assert (user(), person()) == ("runner", "ann job/7")


def test_an_account_may_have_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2_000_000_000)

    assert user() is None
    assert person() is None
