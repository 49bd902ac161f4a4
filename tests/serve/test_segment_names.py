"""Segments named after files whose names hold blanks, `#`, `%` and letters of other scripts, as in Pinot."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.serve.app import App
from tests.serve.test_jobs import ROWS, lines, spec, table

NAMES = ("or#ders 1", "größe %41", "a'b,c;d=e", "注文[2]{3}^", "x&y+z=1")


def _named_by_files(folder: Path) -> dict[str, Any]:
    configs = {"file.path.pattern": r".+/(.+)\.json", "segment.name.template": r"${filePathPattern:\1}"}
    return {**spec(folder), "segmentNameGeneratorSpec": {"type": "inputFile", "configs": configs}}


def _segments(app: App) -> dict[str, int]:
    sql = 'select "$segmentName", count(*) from orders group by "$segmentName" limit 100'
    return dict(app.ok("POST", "/query/sql", {"sql": sql})["resultTable"]["rows"])


@pytest.mark.spark
def test_segments_named_by_files_of_any_letters(working: App, tmp_path: Path) -> None:
    table(working)
    folder = tmp_path / "in put#%41"
    folder.mkdir()
    for number, name in enumerate(NAMES):
        (folder / f"{name}.json").write_bytes(lines([{**ROWS[0], "order_id": number, "ts": 1000 + number}]))
    body = {"spec": _named_by_files(folder)}
    report = working.ok("POST", "/jobs?wait=true", body)
    assert set(report["segments_to"]) == set(NAMES)
    assert _segments(working) == dict.fromkeys(NAMES, 1)
    again = working.ok("POST", "/jobs?wait=true", body)
    assert "already hold exactly" in again["sentence"], again["sentence"]
    for name in NAMES:
        shown = working.ok("GET", f"/segments/orders/{quote(name, safe='')}/metadata")
        assert shown["segment.name"] == name and shown["segment.total.docs"] == "1"

    started = working.ok(
        "POST",
        "/segments/orders/startReplaceSegments?type=OFFLINE",
        {"segmentsFrom": [NAMES[0], NAMES[1]], "segmentsTo": ["neu & größer 100%"]},
    )
    entry = started["segmentLineageEntryId"]
    for name in NAMES:
        (folder / f"{name}.json").unlink()
    (folder / "neu & größer 100%.json").write_bytes(lines([{**ROWS[0], "order_id": 9}, ROWS[1]]))
    assert entry in working.ok("POST", "/jobs?wait=true", body)["sentence"]
    working.ok("POST", f"/segments/orders/endReplaceSegments?segmentLineageEntryId={entry}")
    assert _segments(working) == {"neu & größer 100%": 2, **dict.fromkeys(NAMES[2:], 1)}


@pytest.mark.spark
def test_a_name_that_cannot_be_one_names_its_file(working: App, tmp_path: Path) -> None:
    table(working)
    folder = tmp_path / "input"
    folder.mkdir()
    (folder / "a:b.json").write_bytes(lines(ROWS))
    status, refused = working.call("POST", "/jobs?wait=true", {"spec": _named_by_files(folder)})
    text = json.dumps(refused)
    assert status == 400 and "a:b.json would give its segment the name 'a:b'" in text and "Rename the file" in text
