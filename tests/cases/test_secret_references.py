"""Secrets by reference where they are used: a store that asks for keys. `test_secured` has those of a broker.

Each is read from there; nothing that the product writes or answers holds the secret; one that is not there is named.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.fs as pafs
import pytest

from tests.cases.secret_places import answers, assert_nowhere, reference, take_away
from tests.recipes.conftest import ROOT, RecipeHome
from tests.s3_server import needs_s3, s3_server

pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
ORDERS = ROOT / "data" / "orders"

JOB = """
jobType: SegmentCreationAndTarPush
inputDirURI: 's3://bucket/in'
includeFileNamePattern: 'glob:**/orders.json'
pinotFSSpecs:
  - scheme: s3
    configs: {endpoint: 'http://%s', region: us-east-1, accessKey: '%s', secretKey: '%s'}
recordReaderSpec: {dataFormat: json}
tableSpec: {tableName: orders}
segmentNameGeneratorSpec: {type: fixed, configs: {segment.name: orders_1632463351000_1632467070000_0}}
"""


@needs_s3
@pytest.mark.parametrize("kind", ["env", "file"])
def test_keys_of_an_object_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    home = RecipeHome(tmp_path / "home", capsys)
    schema, config = str(ORDERS / "orders_schema.json"), str(ORDERS / "orders_offline_table.json")
    home.run("table", "create", "--schema", schema, "--config", config)
    with s3_server(tmp_path / "store") as server:
        user, secret = (server.options[f"aws_{name}"] for name in ("access_key_id", "secret_access_key"))
        store = pafs.S3FileSystem(
            access_key=user, secret_key=secret, endpoint_override=server.address, scheme="http",
            region="us-east-1", allow_bucket_creation=True,
        )  # fmt: skip
        store.create_dir("bucket")
        with store.open_output_stream("bucket/in/orders.json") as out:
            out.write((ORDERS / "corrected" / "orders.json").read_bytes())
        given = reference(kind, secret, tmp_path, monkeypatch)
        (tmp_path / "job.yml").write_text(JOB % (server.address, user, given))
        missing = take_away(kind, tmp_path, monkeypatch)
        job = ("job", "run", str(tmp_path / "job.yml"), "--yes")
        home.run(*job, code=1)
        assert missing in home.messages and "bug" not in home.messages
        reference(kind, secret, tmp_path, monkeypatch)
        told = home.run(*job)
        assert told["rows_after"] > 0 and home.rows("select count(*) as n from orders") == [{"n": told["rows_after"]}]
        made = [home.run("replacement", verb, "orders", *more) for verb, *more in (("list",), ("show", told["act"]))]
        assert_nowhere(secret, home.home, json.dumps([told, made]), *answers(home))
        reference(kind, "another", tmp_path, monkeypatch)
        home.run(*job, code=1)
        assert "s3://bucket/in cannot be read" in home.messages and "another" not in home.messages
