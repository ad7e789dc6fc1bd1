import os

import pytest

from cli.baseline import _user


@pytest.fixture(autouse=True)
def _no_names(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)


def test_who_pins_is_who_runs_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("USER", "ann")

    assert _user() == "ann"


def test_a_user_without_a_name_pins_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 2_000_000_000)

    assert _user() is None
