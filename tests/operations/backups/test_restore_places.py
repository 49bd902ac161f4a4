"""The folder that a backup is restored into: which cannot become a home, and what may lie there already."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.errors import UsageError
from hybrid.operations.backups.backup_store import BackupStore
from tests.operations.backups.restored_homes import SQL, opened, restored


@pytest.mark.slow
def test_a_place_that_cannot_become_a_home(
    here: Hybrid, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.backups.create(store)
    for place in (store / "objects" / "x", store, store.parent):
        with pytest.raises(UsageError, match="contain each other"):
            opened(place).backups.restore(store)
    volume = tmp_path / "volume"
    volume.mkdir()
    read = list[str]()
    monkeypatch.setattr(BackupStore, "read", lambda self, name: read.append(name))
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path) == volume)
    with pytest.raises(UsageError, match="is a mount point") as refused:
        opened(volume).backups.restore(store)
    hint = f"Name a folder in it: hybrid backup restore ... --home {volume / 'home'}"
    assert read == [] and refused.value.hint == hint
    monkeypatch.undo()
    new = restored(here, store, volume / "home")
    assert len(new.query(SQL).rows) == 4
    new.close()


@pytest.mark.slow
def test_a_restore_that_fails_at_its_end_keeps_logs(
    here: Hybrid, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.backups.create(store)
    log = tmp_path / "new" / "logs" / "cli.log"
    log.parent.mkdir(parents=True)
    log.write_text("{}")

    def fails(*_: Path) -> None:
        raise OSError(errno.EBUSY, "Device or resource busy")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="busy"):
        patch.setattr("hybrid.operations.backups.backup_restore.durable.rename", fails)
        opened(tmp_path / "new").backups.restore(store)
    assert log.read_text() == "{}" and not list(tmp_path.glob(".new*"))
    part = tmp_path / ".new.restoring"  # of one that was killed before its last rename
    part.mkdir()
    log.parent.rename(part / "logs")
    new = restored(here, store, tmp_path / "new")
    assert log.read_text() == "{}" and len(new.query(SQL).rows) == 4
    new.close()


@pytest.mark.slow
def test_logs_of_a_failed_restore_do_not_stand_in_the_way(here: Hybrid, store: Path, tmp_path: Path) -> None:
    here.backups.create(store)
    (tmp_path / "new" / "logs").mkdir(parents=True)
    (tmp_path / "new" / "logs" / "cli.log").write_text("{}")
    new = restored(here, store, tmp_path / "new")
    assert (new.home / "logs" / "cli.log").read_text() == "{}" and len(new.query(SQL).rows) == 4
    new.close()
