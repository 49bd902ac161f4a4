"""A file is complete or absent, and nobody's file is replaced unasked."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import ConflictError, MachineError, NotFoundError, UsageError
from hybrid.files.results import output_file
from hybrid.files.results.output_file import OutputFile, open_output


def test_the_file_is_there_once_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "a.csv"
    output = open_output(target, force=False)
    assert output.can_restart and output.write(b"old") == 3
    output.restart()
    output.write(b"new\n")
    output.flush()
    assert not target.exists() and [path.name.startswith(".a.csv.") for path in tmp_path.iterdir()] == [True]
    output.complete()
    assert target.read_bytes() == b"new\n" and output.bytes == 4
    assert list(tmp_path.iterdir()) == [target]


def test_a_discarded_file_leaves_nothing(tmp_path: Path) -> None:
    output = open_output(tmp_path / "a.csv", force=False)
    output.write(b"x" * 10)
    output.discard()
    output.discard()
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_replaced_by_force_only(tmp_path: Path) -> None:
    target = tmp_path / "a.csv"
    target.write_text("mine")
    with pytest.raises(ConflictError, match=r"exists already. Nothing was written") as failed:
        open_output(target, force=False)
    assert "--force" in str(failed.value.hint) and target.read_text() == "mine"
    output = open_output(target, force=True)
    output.write(b"new")
    assert target.read_text() == "mine"
    output.complete()
    assert target.read_text() == "new" and list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("has_links", [True, False])
def test_a_file_that_came_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_links: bool) -> None:
    if not has_links:
        monkeypatch.setattr(output_file.os, "link", _refused(errno.EPERM))
    target = tmp_path / "a.csv"
    output = open_output(target, force=False)
    output.write(b"new")
    target.write_text("mine")
    with pytest.raises(ConflictError):
        output.complete()
    output.discard()
    assert target.read_text() == "mine" and list(tmp_path.iterdir()) == [target]


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_file.os, "link", _refused(errno.EPERM))
    output = open_output(tmp_path / "a.csv", force=False)
    output.write(b"new")
    output.complete()
    assert [path.read_text() for path in tmp_path.iterdir()] == ["new"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "a.csv").symlink_to("real.csv")
    output = open_output(tmp_path / "a.csv", force=True)
    output.write(b"new")
    output.complete()
    assert (tmp_path / "a.csv").is_symlink() and (tmp_path / "real.csv").read_text() == "new"


def test_folders_are_no_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        open_output(tmp_path, force=True)
    with pytest.raises(NotFoundError, match=r"folder '.*nowhere' does not exist"):
        open_output(tmp_path / "nowhere" / "a.csv", force=False)


def test_a_device_is_written_as_it_is() -> None:
    output = open_output(Path(os.devnull), force=False)
    assert not output.can_restart
    output.write(b"x")
    with pytest.raises(ConflictError, match="Run it again"):
        output.restart()
    output.complete()
    output.discard()
    assert Path(os.devnull).exists()


def test_a_folder_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output_file, "open", _refused(errno.EACCES), raising=False)
    with pytest.raises(MachineError, match=r"a\.csv cannot be written: Permission denied"):
        open_output(tmp_path / "a.csv", force=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this machine has no /dev/full")
def test_a_full_disk() -> None:
    output = open_output(Path("/dev/full"), force=False)
    with pytest.raises(MachineError, match=r"/dev/full: No space left on device\. No file was left") as failed:
        output.write(b"x" * 2_000_000)
        output.flush()
    output.discard()
    assert "Make room" in str(failed.value.hint)


def test_a_disk_that_is_full_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = open_output(tmp_path / "a.csv", force=False)
    assert isinstance(output, OutputFile)
    output.write(b"x")
    monkeypatch.setattr(output_file.durable, "sync", _refused(errno.ENOSPC))
    with pytest.raises(MachineError, match="No space left"):
        output.complete()
    output.discard()
    assert list(tmp_path.iterdir()) == []


def _refused(number: int) -> Any:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    return refuse
