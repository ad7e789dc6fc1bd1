import os
from pathlib import Path

from cli.embedded.layout import Layout, user_name


def test_a_stack_has_one_mark_however_its_folder_is_written(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(tmp_path)
    straight = Layout.of(tmp_path / "state")
    assert Layout.of(link / "x" / ".." / "state").mark == straight.mark
    assert Layout.of(tmp_path / "other").mark != straight.mark


def test_the_mark_is_short_and_names_the_user(tmp_path: Path) -> None:
    prefix, user, digest = Layout.of(tmp_path / ("long" * 50)).mark.split("-")
    assert prefix == "recallwatch"
    assert user == str(os.geteuid())
    assert len(digest) == 10


def test_a_user_without_a_name_is_shown_by_number() -> None:
    assert user_name(0) == "root"
    assert user_name(987_654) == "987654"


def test_creating_twice_changes_nothing(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path / "a" / "b")
    layout.create()
    (layout.state / ".gitignore").write_text("mine\n")
    layout.create()
    assert (layout.state / ".gitignore").read_text() == "mine\n"
    assert layout.logs.stat().st_mode & 0o777 == 0o700
