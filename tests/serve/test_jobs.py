"""Jobs, replacements and uploaded files over HTTP, carried out by Spark."""

import json
import os
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from hybrid.serve.context import ServerLimits
from tests.serve.app import OFFLINE, SCHEMA, App, form

ROWS = [{"order_id": number, "customer": "ada", "amount": 1.5, "ts": 1000 * number} for number in (1, 2, 3)]


def lines(rows: list[dict[str, Any]]) -> bytes:
    return b"\n".join(json.dumps(row).encode() for row in rows)


def spec(folder: Path) -> dict[str, Any]:
    return {
        "jobType": "SegmentCreationAndTarPush",
        "inputDirURI": str(folder),
        "recordReaderSpec": {"dataFormat": "json"},
        "tableSpec": {"tableName": "orders"},
        "segmentNameGeneratorSpec": {"type": "fixed", "configs": {"segment.name": "${name}"}},
    }


@pytest.fixture
def files(tmp_path: Path) -> Path:
    folder = tmp_path / "input"
    folder.mkdir()
    (folder / "orders.json").write_bytes(lines(ROWS))
    return folder


def table(app: App) -> App:
    app.ok("POST", "/schemas", SCHEMA)
    app.ok("POST", "/tables", OFFLINE)
    return app


def total(app: App) -> list[Any]:
    found = app.ok("POST", "/query/sql", {"sql": "select count(*), sum(amount) from orders"})
    return found["resultTable"]["rows"][0]


@pytest.mark.spark
def test_a_job_its_replacement_and_its_revert(working: App, files: Path) -> None:
    table(working)
    body = {"spec": spec(files), "variables": {"name": "history"}, "reason": "the first load", "user": "ada"}
    report = working.ok("POST", "/jobs?wait=true", body)
    assert report["segments_to"] == ["history"] and report["rows_after"] == 3
    assert total(working) == [3, 4.5]

    (files / "orders.json").write_bytes(lines([{**row, "amount": 2.5} for row in ROWS]))
    text = json.dumps(spec(Path("/nowhere")))
    again = {"spec": text, "variables": {"name": "history"}, "input": str(files)}
    expect = ["warn: amount > 100", {"kind": "not_null", "column": "amount"}]
    queued = working.ok("POST", "/jobs", {**again, "expect": expect})
    assert queued["state"] in {"QUEUED", "RUNNING"} and queued["table"] == "orders"
    found = working.until_ended(f"/jobs/{queued['id']}")
    assert found["state"] == "DONE" and found["report"]["changed"] + found["report"]["added"] == 3, found
    assert [one["state"] for one in found["report"]["expectations"]] == ["WARNED", "PASSED"]
    assert total(working) == [3, 7.5]
    assert working.get("/jobs?table=orders")[0]["id"] == queued["id"]

    newest, first = working.get("/tables/orders/replacements")
    assert (first["reason"], first["user"], newest["state"]) == ("the first load", "ada", "ACTIVE")
    assert working.get(f"/tables/orders/replacements/{newest['id']}") == newest
    lineage = working.get("/segments/orders/lineage")["lineageEntries"]
    assert list(lineage) == [first["id"], newest["id"]]
    assert lineage[newest["id"]]["segmentsFrom"] == ["history"] == lineage[newest["id"]]["segmentsTo"]

    reverted = working.ok("POST", f"/tables/orders/replacements/{newest['id']}/revert", {"reason": "wrong prices"})
    assert reverted["version"] is not None and total(working) == [3, 4.5]
    assert working.get("/tables/orders/replacements")[0]["reason"] == "wrong prices"
    assert working.get("/segments/orders/lineage")["lineageEntries"][newest["id"]]["state"] == "REVERTED"
    status, _ = working.refused("POST", f"/tables/orders/replacements/{newest['id'][:-1]}/revert")
    assert status == 404


@pytest.mark.spark
def test_a_job_that_fails_says_why(working: App, files: Path) -> None:
    table(working)
    (files / "orders.json").write_bytes(lines([{**ROWS[0], "order_id": "one"}]))
    status, sentence = working.refused("POST", "/jobs?wait=true", {"spec": spec(files), "variables": {"name": "x"}})
    assert status == 400 and "orders.json" in sentence
    assert working.get("/jobs")[0]["state"] == "FAILED"


@pytest.mark.spark
def test_files_become_segments(working: App, files: Path) -> None:
    table(working)
    as_json = quote(json.dumps({"inputFormat": "json"}))
    body, headers = form("orders.json", lines(ROWS))
    path = f"/ingestFromFile?tableNameWithType=orders_OFFLINE&batchConfigMapStr={as_json}"
    first = working.ok("POST", path, body, headers=headers)
    words = "Successfully ingested file into table: orders_OFFLINE as segment: orders_1000_3000_"
    assert first["status"].startswith(words) and total(working) == [3, 4.5]
    assert list((working.home.home / "uploads").iterdir()) == [], "removed when its rows are there"
    second = working.ok("POST", path, body, headers=headers)
    assert second["status"] != first["status"] and total(working) == [6, 9.0], "appended, as Pinot does"

    csv = quote(json.dumps({"inputFormat": "csv", "recordReader.prop.delimiter": "|"}))
    body, headers = form("orders.csv", b"order_id|customer|amount|ts\n9|bob|1|9000\n")
    working.ok(
        "POST", f"/ingestFromFile?tableNameWithType=orders_OFFLINE&batchConfigMapStr={csv}", body, headers=headers
    )
    assert total(working) == [7, 10.0]

    uri = quote((files / "orders.json").as_uri())
    named = quote(json.dumps(
        {"inputFormat": "json", "segmentNameGenerator.type": "fixed",
         "segmentNameGenerator.configs.segment.name": "mine"}
    ))  # fmt: skip
    path = f"/ingestFromURI?tableNameWithType=orders_OFFLINE&batchConfigMapStr={named}&sourceURIStr={uri}"
    assert working.ok("POST", path)["status"].endswith("as segment: mine")
    assert (files / "orders.json").exists() and total(working) == [10, 14.5]

    body, headers = form("orders.json", b'{"order_id": "x"}')
    path = f"/ingestFromFile?tableNameWithType=orders_OFFLINE&batchConfigMapStr={as_json}"
    assert working.refused("POST", path, body, headers=headers)[0] == 400
    assert list((working.home.home / "uploads").iterdir()) == []


@pytest.mark.slow
def test_specs_that_cannot_be_honoured(app: App, files: Path) -> None:
    table(app)
    good = spec(files)
    for body, said in (
        ({"spec": good}, "${name} is not set"),
        ({"spec": {**good, "jobType": "Nothing"}, "variables": {"name": "x"}}, "'Nothing' is not known"),
        ({"spec": {**good, "tableSpec": {"tableName": "order"}}, "variables": {"name": "x"}}, "Did you mean 'orders'?"),
        ({"spec": "a: [", "variables": {}}, "this is not YAML"),
        ({"spec": "&a [*a]"}, "spec"),
        ({"spec": "a: 1\na: 2"}, "is given twice"),
        ({"spec": good, "variables": {"name": "x"}, "input": "\0"}, "is not a path"),
        ({"spec": good, "variables": {"name": "x"}, "input": "~nobody-here/x"}, "is not a path"),
        ({"spec": {**good, "inputDirURI": "s3://[x"}, "variables": {"name": "x"}}, "names no bucket"),
        ({"spec": {**good, "inputDirURI": "file://[x"}, "variables": {"name": "x"}}, "is not a path"),
        ({"spec": 1}, "spec"),
        ({"spec": good, "dryRun": "yes"}, "dryRun"),
        ({"spec": good, "colour": 1}, "colour"),
        ({}, "spec"),
    ):
        status, sentence = app.refused("POST", "/jobs", body)
        assert status in {400, 404} and said in sentence, (body, sentence)
    bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"{to}: &{to} [{', '.join(['*' + of] * 10)}]\n" for of, to in zip("abcdefgh", "bcdefghi", strict=True)
    )
    assert "stand for more than" in app.refused("POST", "/jobs", {"spec": bomb})[1]
    assert app.home.runs() == []


@pytest.mark.slow
def test_jobs_that_are_not_there(orders: App) -> None:
    assert orders.get("/jobs") == []
    orders.ok("POST", "/tables/orders/forceCommit")
    run = orders.home.runs()[0].id
    assert orders.get("/jobs") == [] and orders.refused("GET", f"/jobs/{run}")[1].endswith("is a seal, no job.")
    assert orders.refused("GET", "/jobs/nothing")[0] == 404
    assert orders.refused("GET", "/jobs?table=order")[0] == 404
    assert orders.refused("GET", "/tables/orders/replacements/nothing")[0] == 404
    assert orders.refused("POST", "/tables/orders/replacements/nothing/revert", {"reason": "x"})[0] == 404


@pytest.mark.slow
def test_files_that_are_refused(app: App, files: Path) -> None:
    table(app)
    as_json = quote(json.dumps({"inputFormat": "json"}))
    start = "/ingestFromFile?tableNameWithType="
    body, headers = form("orders.json", lines(ROWS))
    for path, said in (
        (f"{start}orders&batchConfigMapStr={as_json}", "does not end in _OFFLINE"),
        (f"{start}orders_REALTIME&batchConfigMapStr={as_json}", "does not end in _OFFLINE"),
        (f"{start}order_OFFLINE&batchConfigMapStr={as_json}", "Did you mean 'orders'?"),
        (f"{start}orders_OFFLINE&batchConfigMapStr=x", "batchConfigMapStr: line 1"),
        (f"{start}orders_OFFLINE&batchConfigMapStr=%7B%7D", "Known are: json, csv, parquet"),
        (
            f"{start}orders_OFFLINE&batchConfigMapStr={quote(json.dumps({'inputFormat': 'jsn'}))}",
            "Did you mean 'json'?",
        ),
        (f"{start}orders_OFFLINE&batchConfigMapStr={quote(json.dumps({'inputFormat': 1}))}", "is not a text"),
        (f"{start}orders_OFFLINE", "batchConfigMapStr"),
    ):
        status, sentence = app.refused("POST", path, body, headers=headers)
        assert status in {400, 404} and said in sentence, sentence
    good = f"{start}orders_OFFLINE&batchConfigMapStr={as_json}"
    kind = {"Content-Type": "multipart/form-data"}
    for content, given, said in (
        (b"", headers, "0 whole files"),
        (b"no form", headers, "cannot be read"),
        (body[:-30], headers, "0 whole files"),
        (b"x", {}, "curl -F"),
        (b"x", kind, "curl -F"),
        (form("a.json", b"")[0], headers, "is empty"),
        (body.replace(b"----limit--\r\n", body), headers, "2 whole files"),
    ):
        status, sentence = app.refused("POST", good, content, headers=given)
        assert status == 400 and said in sentence, (content, sentence)
    uris = "/ingestFromURI?tableNameWithType=orders_OFFLINE&batchConfigMapStr=" + as_json + "&sourceURIStr="
    for uri in ("s3://bucket/key", "http://example.org/a.json", "file://elsewhere/a", "/etc/hosts", "x%00", "%5B//[x"):
        status, sentence = app.refused("POST", uris + uri)
        assert status == 400 and "sourceURIStr" in sentence, sentence
    assert app.refused("POST", f"{uris}file:///nowhere/a.json")[0] == 404
    assert app.refused("POST", uris + quote(files.as_uri()))[0] == 404, "a folder is no file"
    assert app.refused("POST", f"{uris}file:///a%2500b")[0] in {400, 404}
    assert app.home.runs() == []
    assert not list((app.home.home / "uploads").glob("*"))


@pytest.mark.slow
def test_a_run_that_outlives_its_request(tmp_path: Path, files: Path) -> None:
    app = table(App(tmp_path / "home", ServerLimits(run_wait_s=0.1)))
    try:
        body = {"spec": spec(files), "variables": {"name": "x"}}
        status, sentence = app.refused("POST", "/jobs?wait=true", body)
        assert status == 504 and sentence.endswith("has not ended: QUEUED.")
        config = quote(json.dumps({"inputFormat": "json"}))
        content, headers = form("orders.json", lines(ROWS))
        path = f"/ingestFromFile?tableNameWithType=orders_OFFLINE&batchConfigMapStr={config}"
        assert app.refused("POST", path, content, headers=headers)[0] == 504
        (upload,) = (app.home.home / "uploads").iterdir()
        assert [file.read_bytes() for file in upload.iterdir()] == [lines(ROWS)], "its run is still to read it"
        long_ago = time.time() - 100_000
        os.utime(upload, (long_ago, long_ago))
        app.refused("POST", path, b"", headers=headers)
        assert not upload.exists(), "swept a day later"
    finally:
        app.close()
