"""Pinot's segment replacement protocol over HTTP: started, pushed to by jobs, ended or reverted."""

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.serve.app import MOVED, App, form, lay_history
from tests.serve.test_jobs import ROWS, lines, spec, table, total

START, END, REVERT = (f"/segments/orders/{act}ReplaceSegments" for act in ("start", "end", "revert"))


def push(app: App, folder: Path, name: str, rows: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return app.ok("POST", "/jobs?wait=true", job(folder, name, rows, **more))


def job(folder: Path, name: str, rows: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    folder.mkdir(exist_ok=True)
    (folder / "orders.json").write_bytes(lines(rows))
    return {"spec": spec(folder), "variables": {"name": name}, **more}


def start(app: App, old: list[str], new: list[str], more: str = "", **body: Any) -> str:
    found = app.ok("POST", f"{START}?type=OFFLINE{more}", {"segmentsFrom": old, "segmentsTo": new, **body})
    return found["segmentLineageEntryId"]


def lineage(app: App) -> dict[str, Any]:
    return app.get("/segments/orders/lineage")["lineageEntries"]


@pytest.mark.spark
def test_pushed_segments_are_visible_together_at_the_end(working: App, tmp_path: Path) -> None:
    lay_history(working.home, ROWS)
    entry = start(working, ["history"], ["low", "high"], customMap={"why": "split"})
    assert lineage(working)[entry]["state"] == "IN_PROGRESS" and lineage(working)[entry]["segmentsTo"] == [
        "low",
        "high",
    ]

    report = push(working, tmp_path / "in", "low", [{**ROWS[0], "amount": 9.0}])
    assert report["version"] is None and report["segments_to"] == ["low"]
    assert report["sentence"].startswith(f"Staged segment 'low' for replacement '{entry}': 1 row.")
    assert total(working) == [3, 4.5] and working.get("/segments/orders") == [{"OFFLINE": ["history"]}]
    status, said = working.refused("POST", f"{END}?segmentLineageEntryId={entry}")
    assert status == 409 and said.startswith(f"Segment 'high' of segmentsTo has not been pushed to '{entry}'")

    push(working, tmp_path / "in", "low", [{**ROWS[0], "amount": 2.5}])  # again: the last push of a segment counts
    config = {"inputFormat": "json", "segmentNameGenerator.type": "fixed",
              "segmentNameGenerator.configs.segment.name": "high"}  # fmt: skip
    content, headers = form("orders.json", lines(ROWS[1:]))
    path = f"/ingestFromFile?tableNameWithType=orders_OFFLINE&batchConfigMapStr={quote(json.dumps(config))}"
    assert "Not visible before" in working.ok("POST", path, content, headers=headers)["sentence"]
    assert total(working) == [3, 4.5]

    done = working.ok("POST", f"{END}?type=OFFLINE&segmentLineageEntryId={entry}")
    assert done["state"] == "COMPLETED" and total(working) == [3, 5.5]
    assert working.get("/segments/orders") == [{"OFFLINE": ["high", "low"]}]
    (newest,) = working.get("/tables/orders/replacements")
    assert (newest["id"], newest["kind"], newest["reason"]) == (entry, "replace", "why=split")
    assert newest["segments_from"] == ["history"] and newest["segments_to"] == ["low", "high"]
    assert len(newest["inputs"]) == 2 and newest["rows_after"] == 3
    assert lineage(working)[entry]["state"] == "COMPLETED"

    again = working.ok("POST", f"{END}?segmentLineageEntryId={entry}")
    assert again["sentence"].startswith(f"Nothing to do: '{entry}' is COMPLETED") and total(working) == [3, 5.5]
    assert working.ok("POST", f"{REVERT}?segmentLineageEntryId={entry}")["state"] == "REVERTED"
    assert total(working) == [3, 4.5] and lineage(working)[entry]["state"] == "REVERTED"
    assert working.refused("POST", f"{REVERT}?segmentLineageEntryId={entry}")[0] == 409


@pytest.mark.spark
def test_what_is_thrown_away_added_and_removed(working: App, tmp_path: Path) -> None:
    table(working)
    thrown = start(working, [], ["a"])
    push(working, tmp_path / "in", "a", ROWS)
    status, said = working.refused("POST", f"{REVERT}?segmentLineageEntryId={thrown}")
    assert status == 409 and "is IN_PROGRESS" in said
    working.ok("POST", f"{REVERT}?segmentLineageEntryId={thrown}&forceRevert=true")
    assert lineage(working)[thrown]["state"] == "REVERTED" and total(working)[0] == 0
    for path in (f"{END}?segmentLineageEntryId={thrown}", f"{REVERT}?segmentLineageEntryId={thrown}&forceRevert=true"):
        status, said = working.refused("POST", path)
        assert status == 409 and "is REVERTED, not IN_PROGRESS" in said

    older = start(working, [], ["a", "b"])
    push(working, tmp_path / "in", "a", ROWS[:1])
    status, said = working.refused("POST", START, {"segmentsTo": ["b", "c"]})
    assert status == 409 and said.startswith(f"segmentsTo: segment 'b' of 'orders' is in segmentsTo of '{older}' too")
    newer = start(working, [], ["b", "c"], "&forceCleanup=true")
    assert lineage(working)[older]["state"] == "REVERTED"
    push(working, tmp_path / "in", "c", ROWS)
    status, said = working.refused("POST", f"{END}?segmentLineageEntryId={newer}", {"segmentsTo": ["x"]})
    assert status == 400 and "'x' is not in segmentsTo" in said
    working.ok("POST", f"{END}?segmentLineageEntryId={newer}", {"segmentsTo": ["c"]})
    assert total(working) == [3, 4.5] and lineage(working)[newer]["segmentsTo"] == ["c"]
    assert working.refused("POST", START, {"segmentsFrom": ["c"], "segmentsTo": ["c"]})[0] == 409, "it exists"

    last = start(working, [], ["d"])
    assert working.get("/tables/orders/replacements")[0]["state"] == "IN_PROGRESS"
    assert working.get(f"/tables/orders/replacements/{last}")["result"].startswith("Waits for segment 'd'")
    taken = working.ok("POST", f"/tables/orders/replacements/{last}/revert")
    assert taken["sentence"] == f"Reverted '{last}': nothing was pushed to it." and taken["version"] is None
    assert lineage(working)[last]["state"] == "REVERTED"

    gone = start(working, ["c"], [])
    working.ok("POST", f"{END}?segmentLineageEntryId={gone}")
    assert total(working)[0] == 0 and working.get("/segments/orders") == [{"OFFLINE": []}]


@pytest.mark.spark
def test_what_changed_since_the_start_is_refused(working: App, tmp_path: Path) -> None:
    lay_history(working.home, ROWS)
    entry = start(working, ["history"], ["new", "late"])
    push(working, tmp_path / "in", "new", ROWS)
    two = {**spec(tmp_path / "two"), "segmentNameGeneratorSpec": {"type": "inputFile", "configs": {
        "file.path.pattern": ".*/(.+).json", "segment.name.template": "${filePathPattern:\\1}"}}}  # fmt: skip
    (tmp_path / "two").mkdir()
    for name in ("late", "other"):
        (tmp_path / "two" / f"{name}.json").write_bytes(lines(ROWS))
    status, said = working.refused("POST", "/jobs?wait=true", {"spec": two})
    assert status == 409 and f"which '{entry}' waits for, and segment 'other'" in said
    covering = job(tmp_path / "in", "late", ROWS, covers="all")
    assert "says what goes" in working.refused("POST", "/jobs?wait=true", covering)[1]
    dry = push(working, tmp_path / "in", "late", ROWS, dryRun=True)
    assert dry["sentence"].startswith("Would stage segment 'late'")

    push(working, tmp_path / "in", "history", ROWS[:2])
    before = total(working)
    only = {"segmentsTo": ["new"]}
    status, said = working.refused("POST", f"{END}?segmentLineageEntryId={entry}", only)
    assert status == 409 and "segment 'history' has been rewritten since" in said and total(working) == before
    assert lineage(working)[entry]["state"] == "IN_PROGRESS"


@pytest.mark.slow
def test_what_cannot_be_started_or_ended(orders: App) -> None:
    for body, status, words in (
        ({}, 400, "both empty"),
        ({"segmentsFrom": ["nothing"], "segmentsTo": ["a"]}, 404, "'nothing' does not exist"),
        ({"segmentsFrom": ["orders_1000_2000_1"]}, 404, f"Did you mean '{MOVED}'?"),
        ({"segmentsTo": [MOVED]}, 409, f"segment '{MOVED}' exists in OFFLINE"),
        ({"segmentsTo": ["a", "a"]}, 400, "'a' is given twice"),
        ({"segmentsTo": ["../a"]}, 400, "cannot be a segment's name"),
        ({"segmentsTo": "a"}, 400, "segmentsTo"),
        ({"segmentsTo": ["a"], "colour": 1}, 400, "colour"),
    ):
        code, said = orders.refused("POST", START, body)
        assert code == status and words in said, (body, said)
    assert orders.refused("POST", f"{START}?type=REALTIME", {"segmentsTo": ["a"]})[0] == 400
    for path in (END, REVERT):
        assert orders.refused("POST", path)[0] == 400, "the id is missing"
        for entry in ("replace-0", "..", "%00"):
            assert orders.refused("POST", f"{path}?segmentLineageEntryId={entry}")[0] == 404
        assert orders.refused("POST", f"{path.replace('orders', 'nowhere')}?segmentLineageEntryId=x")[0] == 404
    entry = start(orders, [MOVED], ["a"])
    status, said = orders.refused("POST", START, {"segmentsFrom": [MOVED], "segmentsTo": ["b"]})
    assert status == 409 and "segmentsFrom" in said and entry in said
    assert list(lineage(orders)) == [entry]
