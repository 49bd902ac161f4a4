"""A process that opens several homes keeps to the settings of each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import sqlalchemy as sa

import hybrid
from hybrid.query.connection import spill_bytes
from hybrid.runtime import durable
from hybrid.runtime.disk import FREE_MIN, full_disk, reserve_bytes
from hybrid.runtime.durable import is_enabled
from hybrid.runtime.folder_setting import FolderSetting
from tests.operations.tables.test_change import given

_GIB = 1024**3


def test_each_home_is_synced_as_its_own_settings_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[Path] = []

    def record(descriptor: int) -> None:
        synced.append(Path(os.readlink(f"/proc/self/fd/{descriptor}")))

    bare, safe = tmp_path / "bare", tmp_path / "safe"
    bare.mkdir()
    monkeypatch.delenv("HYBRID_DURABLE", raising=False)
    durable.configure(tmp_path, True)  # the default, but for `make unit`
    (bare / "hybrid.toml").write_text("durable = false\n")
    homes = {folder: hybrid.connect(folder) for folder in (bare, safe)}
    monkeypatch.setattr(os, "fsync", record)
    for folder in (safe, bare, safe):  # whatever was opened or written last
        synced.clear()
        homes[folder].create_table(given("INT"))
        homes[folder].drop_table("orders", purge=True)
        found = [path for path in synced if path.is_relative_to(folder)]
        assert bool(found) == (folder == safe), found
        with homes[folder].context.catalog._engine.connect() as connection:
            mode = connection.execute(sa.text("PRAGMA synchronous")).scalar()
        assert mode == (2 if folder == safe else 1)
    assert is_enabled(safe / "warehouse") and not is_enabled(bare / "warehouse") and is_enabled(tmp_path)


def test_each_home_leaves_as_much_of_the_disk_as_its_own_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hybrid.query.connection.free_bytes", lambda _: 10 * _GIB)
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    (first / "hybrid.toml").write_text(f"disk_reserve_bytes = {4 * _GIB}\n")
    hybrid.connect(first)
    hybrid.connect(second)
    assert reserve_bytes(first / "uploads") == 4 * _GIB and reserve_bytes(second / "uploads") == FREE_MIN
    assert spill_bytes(first / "spill") == 3 * _GIB and spill_bytes(second / "spill") == 9 * _GIB // 2
    assert "at least 4096 MiB" in str(full_disk(first / "warehouse").hint)
    (first / "hybrid.toml").unlink()
    hybrid.connect(first)
    assert reserve_bytes(first) == FREE_MIN, "a home that is opened again has its settings of now"


def test_the_nearest_folder_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setting = FolderSetting("default")
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    setting.set(tmp_path / "link", "outer")
    setting.set(tmp_path / "a" / "b", "inner")
    monkeypatch.chdir(tmp_path)
    for path, value in {
        "a": "outer",
        "a/x": "outer",
        "link/x": "outer",
        "a/b": "inner",
        "a/b/c/d": "inner",
        "ab": "default",
        ".": "default",
        "/": "default",
    }.items():
        assert setting.at(Path(path)) == value, path
