"""Secrets by reference where they are used: a broker that asks for a password, a store that asks for keys.

Each is read from there; nothing that the product writes or answers holds the secret; one that is not there is named.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.fs as pafs
import pytest

from hybrid.kafka.topics import create_topic
from tests.cases.test_secured import PASSWORD, secured
from tests.recipes.conftest import ROOT, RecipeHome
from tests.s3_server import needs_s3, s3_server
from tests.serve.server import Server

__all__ = ["secured"]
pytestmark = [pytest.mark.spark, pytest.mark.timeout(300)]
VARIABLE, ORDERS = "HYBRID_TEST_SECRET", ROOT / "data" / "orders"
# What a part of the password is like in every way of writing it: none of its characters is escaped anywhere.
PART = "et; x"
ASKED = (
    *("/tables", "/tables/orders", "/tableConfigs/orders", "/tables/orders/connectors", "/tables/orders/pauseStatus"),
    *("/tables/orders/consumingSegmentsInfo", "/tables/orders/rejected", "/segments/orders", "/readyz", "/metrics"),
)


def assert_nowhere(secret: str, home: Path, *said: str) -> None:
    """No file below the home and beside it, and nothing that was said, holds the secret."""
    assert PASSWORD.endswith(PART)
    for path in home.parent.rglob("*"):
        if path.is_file() and path.name not in {"secret", "store", "s3.log"} and "store" not in path.parts:
            assert secret.encode() not in path.read_bytes(), path
    for text in said:
        assert secret not in text


def reference(kind: str, secret: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A reference to the secret, which is put where it refers to."""
    if kind == "env":
        monkeypatch.setenv(VARIABLE, secret)
        return f"${{env:{VARIABLE}}}"
    (folder / "secret").write_text(f"{secret}\n", encoding="utf-8")
    return f"${{file:{folder / 'secret'}}}"


def take_away(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Takes the secret away; what an error has to say of it."""
    if kind == "env":
        monkeypatch.delenv(VARIABLE)
        return f"is ${{env:{VARIABLE}}}, and this process has no environment variable '{VARIABLE}'"
    (folder / "secret").unlink()
    return f"is ${{file:{folder / 'secret'}}}, which cannot be read: it does not exist"


def answers(home: RecipeHome) -> Iterator[str]:
    """What the command line tells of a table and of what was done."""
    for words in ("status", "table show orders", "table list", "connector list orders", "task list", "logs"):
        yield json.dumps(home.run(*words.split())) + home.messages


def table_words(folder: Path, brokers: str, topic: str, security: dict[str, str]) -> list[str]:
    """The words that create the table of the recipe on a secured broker."""
    config = json.loads((ORDERS / "orders_table.json").read_text())
    streams = config["tableIndexConfig"]["streamConfigs"]
    streams |= {f"stream.kafka.consumer.prop.{key}": value for key, value in security.items()}
    streams |= {"stream.kafka.broker.list": brokers, "stream.kafka.topic.name": topic}
    (folder / "table.json").write_text(json.dumps(config))
    schema, offline = str(ORDERS / "orders_schema.json"), str(ORDERS / "orders_offline_table.json")
    given = ["--schema", schema, "--config", str(folder / "table.json"), "--config", offline]
    return ["table", "create", *given, "--kafka", brokers]


@pytest.mark.kafka
@pytest.mark.parametrize(("kind", "listener"), [("env", "TLS"), ("file", "SASL")])
def test_a_password_of_kafka(
    secured: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    listener: str,
) -> None:
    home, topic = RecipeHome(tmp_path / "home", capsys), f"t-{uuid.uuid4().hex[:12]}"
    create_topic(secured["PLAINTEXT"], topic)
    jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    security = {
        "security.protocol": "SASL_SSL" if listener == "TLS" else "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{jaas} username="ada" password="{reference(kind, PASSWORD, tmp_path, monkeypatch)}";',
    }
    if listener == "TLS":
        security |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(secured["ca"])}
    create = table_words(tmp_path, secured[listener], topic, security)
    missing = take_away(kind, tmp_path, monkeypatch)
    home.run(*create, code=1)
    assert missing in home.messages and "bug" not in home.messages
    reference(kind, PASSWORD, tmp_path, monkeypatch)
    home.run(*create)
    home.run("kafka", "produce", topic, str(ORDERS / "events.jsonl"), "--kafka", secured["PLAINTEXT"])
    home.run("ingest", "orders", "--until-caught-up")
    count = "select count(*) as n from orders"
    assert home.rows(count) == [{"n": 14}]
    assert_nowhere(PART, home.home, *answers(home))

    missing = take_away(kind, tmp_path, monkeypatch)
    home.run("ingest", "orders", "--until-caught-up", code=1)
    assert missing in home.messages and "bug" not in home.messages
    assert home.rows(count) == [{"n": 14}], "what is committed is answered without the password"
    assert f"{missing}. Answered from committed rows only." in home.messages
    assert missing in json.dumps(home.run("status", code=3)), "what is wrong with the table"
    reference(kind, "another", tmp_path, monkeypatch)
    home.run("ingest", "orders", "--until-caught-up", code=1)
    assert_nowhere("another", home.home / "logs", home.messages)


@pytest.mark.kafka
def test_a_server_with_a_password_of_kafka(
    secured: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes read the reference; none of its answers, records and logs holds what they read."""
    home, topic = RecipeHome(tmp_path / "home", capsys), f"t-{uuid.uuid4().hex[:12]}"
    create_topic(secured["PLAINTEXT"], topic)
    jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    login = f'{jaas} username="ada" password="{reference("env", PASSWORD, tmp_path, monkeypatch)}";'
    security = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
    home.run(*table_words(tmp_path, secured["SASL"], topic, security))
    home.run("kafka", "produce", topic, str(ORDERS / "events.jsonl"), "--kafka", secured["PLAINTEXT"])
    with Server(home.home) as server:
        # Sealing is a run, done when Spark has committed all that Kafka holds.
        status, queued = server.call("POST", "/verbs/seal", {"table": "orders"})
        assert status == 202, queued
        run = server.await_task(queued["run"])
        assert run["state"] == "DONE", run
        assert server.rows("select count(*) from orders") == [[14]]
        said = [server.call("GET", path, text=True)[1] for path in (*ASKED, f"/tasks/task/{queued['run']}/debug")]
        said += [json.dumps(server.ok("POST", f"/verbs/{verb}", {})) for verb in ("runs", "status", "table_list")]
    assert_nowhere(PART, home.home, json.dumps(run), *said)


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
