"""Definitions of tables that other servers hold, as one process writes them and another reads them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hybrid.catalog.remote_tables import RemoteTables
from hybrid.errors import DataError

DOCUMENT = {
    "name": "t",
    "schema_doc": {},
    "realtime_doc": None,
    "offline_doc": None,
    "brokers": None,
    "created_at": "x",
}


def test_what_is_put_is_found_by_another_process(tmp_path: Path) -> None:
    writer, reader = RemoteTables(tmp_path), RemoteTables(tmp_path)
    assert reader.names() == frozenset() and reader.find("t") is None
    for name in ("t", "u", "v"):
        writer.put(name, {**DOCUMENT, "name": name})
        assert name in reader.names(), "also within the same moment"
    found = reader.find("t")
    assert found is not None and found.name == "t"
    writer.remove("t")
    writer.remove("t")
    assert reader.names() == {"u", "v"} and reader.find("t") is None
    writer.keep_only(["v", "w"])
    assert reader.names() == {"v"}


def test_names_are_listed_once_while_nothing_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = RemoteTables(tmp_path)
    tables.put("t", DOCUMENT)
    folder = tmp_path / ".remote"
    os.utime(folder, ns=(0, 10**18))
    assert tables.names() == {"t"}
    monkeypatch.setattr(os, "listdir", lambda _: pytest.fail("listed again"))
    assert tables.names() == {"t"}
    tables.put("t", DOCUMENT)  # as it is
    assert tables.names() == {"t"}


def test_what_is_no_definition(tmp_path: Path) -> None:
    tables = RemoteTables(tmp_path)
    tables.put("t", DOCUMENT)
    (tmp_path / ".remote" / "u.json.0123.part").write_text("{")  # a process was killed while it wrote
    (tmp_path / ".remote" / "w.json").write_text("{")
    assert tables.names() == {"t", "w"} and tables.find("../t") is None
    with pytest.raises(DataError, match="damaged"):
        tables.find("w")
