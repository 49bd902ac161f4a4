"""A broker that asks who connects, over TLS and without: Spark, both tails and all checks get through.

Its password may be a reference: it is read from there, and nothing that the product writes or answers holds it.
"""

from __future__ import annotations

import json
import subprocess
import time
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.config.kafka_security import KafkaSecurity
from hybrid.config.table_config import Half
from hybrid.errors import StreamError
from hybrid.jvm import broker_files
from hybrid.jvm.broker import free_port
from hybrid.kafka import streams
from hybrid.kafka.admin_pool import AdminPool
from hybrid.kafka.broker_watch import BrokerWatch
from hybrid.kafka.clients import connect_admin
from hybrid.kafka.streams import offsets_at, view_stream
from hybrid.kafka.topics import create_topic
from hybrid.operations.tables.create import create_halves
from hybrid.query.cache.stream import KafkaStream
from hybrid.query.tail import KafkaTail
from hybrid.table.state import Act, RealtimeState
from tests.cases.secret_places import answers, assert_nowhere, reference, take_away
from tests.cases.tables import LiveTable, layout_in, table_spec
from tests.cases.test_streams import rows
from tests.recipes.conftest import ROOT, RecipeHome
from tests.serve.server import Server
from tests.soak.harness import JVM_OPTIONS
from tests.watchdog import watched_broker

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.timeout(300)]
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required"
PASSWORD = 'se"cr\\et; x'
# What a part of the password is like in every way of writing it: none of its characters is escaped anywhere.
PART = "et; x"
REFUSED = r"refuses the stream's user: Authentication failed: Invalid username or password\."
ORDERS = ROOT / "data" / "orders"
ASKED = (
    *("/tables", "/tables/orders", "/tableConfigs/orders", "/tables/orders/connectors", "/tables/orders/pauseStatus"),
    *("/tables/orders/consumingSegmentsInfo", "/tables/orders/rejected", "/segments/orders", "/readyz", "/metrics"),
)


@pytest.fixture(scope="module")
def secured(tmp_path_factory):
    """Addresses by listener: PLAINTEXT for the test itself, SASL, and TLS with a certificate that `ca` signs."""
    folder = tmp_path_factory.mktemp("secured")
    certificate, key, both = (folder / name for name in ("ca.pem", "key.pem", "both.pem"))
    make = f"openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -keyout {key} -out {certificate}"
    subprocess.run([*make.split(), "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    both.write_text(key.read_text() + certificate.read_text())
    ports = {"SASL": free_port(), "TLS": free_port()}
    quoted = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
    users = f'{JAAS} username="admin" password="x" user_admin="x" user_ada="{quoted}";'.replace("\\", "\\\\")
    kept = broker_files._SERVER
    lines = kept.replace("listeners=PLAINTEXT://127.0.0.1:{port},", "listeners=PLAINTEXT://127.0.0.1:{port},LISTENERS,")
    # Both lines of listeners name them; the first has the controller's behind.
    here = ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items())
    lines = lines.replace("LISTENERS", here).replace(
        "advertised.listeners=PLAINTEXT://127.0.0.1:{port}",
        f"advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},{here}",
    )
    lines = lines.replace("CONTROLLER:PLAINTEXT", "CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT,TLS:SASL_SSL")
    lines += "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256\n"
    for name in ("sasl", "tls"):
        lines += f"listener.name.{name}.plain.sasl.jaas.config={users}\n"
        scram = JAAS.replace("plain.Plain", "scram.Scram")
        lines += f"listener.name.{name}.scram-sha-256.sasl.jaas.config={scram};\n"
    lines += f"listener.name.tls.ssl.keystore.type=PEM\nlistener.name.tls.ssl.keystore.location={both}\n"
    broker_files._SERVER = lines
    local = watched_broker(folder / "home")
    try:
        address = local.start(port=0)
        yield {"PLAINTEXT": address, **{name: f"127.0.0.1:{port}" for name, port in ports.items()}, "ca": certificate}
    finally:
        broker_files._SERVER = kept
        local.stop()


def security_of(listener, ca, password=PASSWORD):
    protocol = {"SASL": "SASL_PLAINTEXT", "TLS": "SASL_SSL"}[listener]
    return KafkaSecurity(protocol, "PLAIN", "ada", password, str(ca) if listener == "TLS" else None)


@pytest.mark.parametrize("listener", ["SASL", "TLS"])
def test_every_client_gets_through(secured, workbench, tmp_path, listener):
    topic = f"t-{uuid.uuid4().hex[:12]}"
    create_topic(secured["PLAINTEXT"], topic)
    made = table_spec(secured[listener], topic)
    security = security_of(listener, secured["ca"])
    spec = replace(made, stream=replace(made.stream, security=security))
    table = LiveTable(spec, layout_in(tmp_path), workbench).create()
    sender = replace(table, spec=table_spec(secured["PLAINTEXT"], topic))
    sender.produce(*rows(1, 2), timestamp_ms=5)
    assert table.queried() == [1, 2], "the tail of a statement"
    table.ingest()
    assert table.visible() == [1, 2], "Spark"
    assert offsets_at(spec.stream, view_stream(spec.stream).ends, 5) == {(topic, 0): 0}
    sender.produce(*rows(3))
    stream = KafkaStream(spec, table.half(Half.REALTIME).realtime, secured[listener])
    try:
        deadline, found = time.monotonic() + 20, []
        while not found and time.monotonic() < deadline:
            found += stream.poll(0.1).messages
        assert [one.offset for one in found] == [2], "the tail of a server"
    finally:
        stream.close()
    wrong = security_of(listener, secured["ca"], "other")
    refused = LiveTable(replace(spec, stream=replace(spec.stream, security=wrong)), table.layout, workbench)
    with pytest.raises(StreamError, match=REFUSED) as caught:
        refused.ingest()
    assert "other" not in str(caught.value) and PASSWORD not in str(caught.value)
    assert table.queried() == [1, 2, 3] and refused.queried() == [1, 2], "answered from committed rows"
    with pytest.raises(StreamError, match=REFUSED):
        create_halves(layout_in(tmp_path / "new"), replace(spec, stream=replace(spec.stream, security=wrong)), 0)
    with pytest.raises(StreamError, match=REFUSED):
        BrokerWatch(secured[listener], wrong)


UNTRUSTED = "has a certificate that is not trusted: "


@pytest.mark.parametrize(
    ("host", "trusts", "why"),
    [
        ("127.0.0.1", False, "self.signed certificate"),
        ("localhost", True, "Hostname mismatch, certificate is not valid for 'localhost'"),
    ],
)
def test_a_certificate_that_is_not_trusted(secured, host, trusts, why):
    """All who make a client of kafka-python for a stream: else they would wait until their timeout."""
    address = secured["TLS"].replace("127.0.0.1", host)
    made = table_spec(address, "any")
    security = replace(security_of("TLS", secured["ca"]), **({} if trusts else {"ca_file": None}))
    spec = replace(made, stream=replace(made.stream, security=security))
    with pytest.raises(StreamError, match=f"{UNTRUSTED}{why}"):
        view_stream(spec.stream)
    with pytest.raises(StreamError, match=f"{UNTRUSTED}{why}"):
        BrokerWatch(address, security)
    created = RealtimeState(Act("create-0", 0, "create", "2021-11-21T00:00:00.000+00:00"))
    tail = KafkaTail().read(spec, created, None)
    assert tail.warnings == (f"Kafka at {address} {UNTRUSTED[:-2]}: answered from committed rows only.",)


def test_an_untrusted_broker_leaves_the_others_to_be_tried(secured):
    stream = table_spec(f"{secured['TLS']},127.0.0.1:{free_port()}", "any").stream
    untrusted = replace(security_of("TLS", secured["ca"]), ca_file=None)
    with pytest.raises(StreamError, match=r"does not answer \(KafkaTimeoutError\)"):
        view_stream(replace(stream, security=untrusted), 1_500)


def test_a_mechanism_that_the_broker_does_not_have_is_refused(secured):
    stream = table_spec(secured["SASL"], "any").stream
    other = replace(security_of("SASL", secured["ca"]), mechanism="SCRAM-SHA-512")
    with pytest.raises(StreamError, match="refuses the stream's user: The broker does not support the requested SASL"):
        view_stream(replace(stream, security=other))


def test_a_broker_that_refuses_leaves_the_others_to_be_tried(secured):
    """A user that was made just now is known to one before the others."""
    stream = table_spec(f"{secured['SASL']},127.0.0.1:{free_port()}", "any").stream
    with pytest.raises(StreamError, match=r"does not answer \(KafkaTimeoutError\)"):
        view_stream(replace(stream, security=security_of("SASL", secured["ca"], "other")), 1_500)


@pytest.mark.parametrize("listener", ["SASL", "TLS"])
def test_a_kept_client_serves_its_own_user_only(secured, monkeypatch, listener):
    topic, connected = f"t-{uuid.uuid4().hex[:12]}", []

    def connect(*arguments):
        connected.append(arguments)
        return connect_admin(*arguments)

    create_topic(secured["PLAINTEXT"], topic)
    stream = table_spec(secured[listener], topic).stream
    right = replace(stream, security=security_of(listener, secured["ca"]))
    wrong = replace(stream, security=security_of(listener, secured["ca"], "other"))
    pool = AdminPool(connect)
    monkeypatch.setattr(streams, "ask_admin", pool.ask)
    with pool.keeping():
        assert view_stream(right) == view_stream(right)
        assert len(connected) == 1
        with pytest.raises(StreamError, match=REFUSED):
            view_stream(wrong)
        assert view_stream(right).topic_ids.keys() == {topic}
        assert len(connected) == 2


# By reference


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
    security = {
        "security.protocol": "SASL_SSL" if listener == "TLS" else "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{JAAS} username="ada" password="{reference(kind, PASSWORD, tmp_path, monkeypatch)}";',
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
    assert PASSWORD.endswith(PART)
    assert_nowhere(PART, home.home, *answers(home))

    missing = take_away(kind, tmp_path, monkeypatch)
    home.run("ingest", "orders", "--until-caught-up", code=1)
    assert missing in home.messages and "bug" not in home.messages
    assert home.rows(count) == [{"n": 14}], "what is committed is answered without the password"
    assert f"{missing}. Answered from committed rows only." in home.messages
    assert missing in json.dumps(home.run("status", code=3)), "what is wrong with the table"
    reference(kind, "another", tmp_path, monkeypatch)
    home.run("ingest", "orders", "--until-caught-up", code=1)
    assert "refuses the stream's user: Authentication failed" in home.messages
    assert home.rows(count) == [{"n": 14}]
    assert "refuses the stream's user: answered from committed rows only" in home.messages
    assert_nowhere("another", home.home / "logs", home.messages)


def test_a_server_with_a_password_of_kafka(
    secured: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its processes read the reference; none of its answers, records and logs holds what they read."""
    home, topic = RecipeHome(tmp_path / "home", capsys), f"t-{uuid.uuid4().hex[:12]}"
    create_topic(secured["PLAINTEXT"], topic)
    login = f'{JAAS} username="ada" password="{reference("env", PASSWORD, tmp_path, monkeypatch)}";'
    security = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": login}
    home.run(*table_words(tmp_path, secured["SASL"], topic, security))
    home.run("kafka", "produce", topic, str(ORDERS / "events.jsonl"), "--kafka", secured["PLAINTEXT"])
    with Server(home.home, env=JVM_OPTIONS) as server:
        # Sealing is a run, done when Spark has committed all that Kafka holds.
        status, queued = server.call("POST", "/verbs/seal", {"table": "orders"})
        assert status == 202, queued
        run = server.await_task(queued["run"])
        assert run["state"] == "DONE", run
        assert server.rows("select count(*) from orders") == [[14]]
        said = [server.call("GET", path, text=True)[1] for path in (*ASKED, f"/tasks/task/{queued['run']}/debug")]
        said += [json.dumps(server.ok("POST", f"/verbs/{verb}", {})) for verb in ("runs", "status", "table_list")]
    assert_nowhere(PART, home.home, json.dumps(run), *said)
