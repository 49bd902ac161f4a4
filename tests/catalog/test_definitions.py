"""Definitions on file systems that lack what most have."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from hybrid.catalog.definitions import Definition, Definitions
from hybrid.errors import ConflictError

ONE = Definition("orders", {"schemaName": "orders"}, None, None, None, "2021-11-21T00:00:00.000+00:00")


def test_a_file_that_cannot_be_looked_at_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that does not answer for a while drops no table."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "definition.json").touch()
    (tmp_path / "no table").mkdir()
    look = os.stat

    def stat(path: object, *given: object, **more: object) -> os.stat_result:
        if str(path).endswith("b/definition.json"):
            raise OSError(errno.EIO, "Input/output error")
        return look(path, *given, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", stat)
    assert Definitions(tmp_path).names() == ["a", "b"]


@pytest.mark.parametrize("links", [True, False])
def test_a_table_is_added_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    """35: os.link fails on some mounts; the first one has the name all the same."""

    def refused(*_: object) -> None:
        raise OSError(errno.ENOTSUP, "Operation not supported")

    if not links:
        monkeypatch.setattr(os, "link", refused)
    definitions = Definitions(tmp_path / "warehouse")
    definitions.add(ONE)
    assert definitions.find("orders") == ONE and definitions.names() == ["orders"]
    with pytest.raises(ConflictError):
        definitions.add(ONE)
    assert [path.name for path in (tmp_path / "warehouse" / "orders").iterdir()] == ["definition.json"]
