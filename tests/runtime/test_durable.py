"""A file that is written once, whoever does so at once: readers see none or the whole of it."""

from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from hybrid.runtime import durable


def test_of_many_who_create_a_file_one_succeeds(tmp_path: Path) -> None:
    path, created, seen = tmp_path / "id", list[str](), list[str]()
    gate = threading.Barrier(8)

    def create(text: str) -> None:
        gate.wait()
        if durable.create_text(path, text):
            created.append(text)
        seen.append(path.read_text(encoding="utf-8"))

    threads = [threading.Thread(target=create, args=(str(number) * 1000,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(created) == 1 and seen == created * 8
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refused)
    assert durable.create_text(tmp_path / "id", "one") and not durable.create_text(tmp_path / "id", "two")
    assert (tmp_path / "id").read_text() == "one" and len(list(tmp_path.iterdir())) == 1


def test_another_error_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(OSError, match="no space left"):
        durable.create_text(tmp_path / "id", "one")
    assert not list(tmp_path.iterdir())
