"""A broker that asks who connects, over TLS and without: Spark, both tails and all checks get through."""

from __future__ import annotations

import subprocess
import time
import uuid
from dataclasses import replace

import pytest

from hybrid.config.kafka_security import KafkaSecurity
from hybrid.config.table_config import Half
from hybrid.errors import StreamError
from hybrid.jvm import broker_files
from hybrid.jvm.broker import LocalBroker, free_port
from hybrid.kafka import streams
from hybrid.kafka.admin_pool import AdminPool
from hybrid.kafka.clients import connect_admin
from hybrid.kafka.streams import offsets_at, view_stream
from hybrid.kafka.topics import create_topic
from hybrid.operations.tables.create import create_halves
from hybrid.query.cache.stream import KafkaStream
from tests.cases.tables import LiveTable, layout_in, table_spec
from tests.cases.test_streams import rows

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
PASSWORD = 'se"cr\\et; x'


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
    jaas = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    users = f'{jaas} username="admin" password="x" user_admin="x" user_ada="{quoted}";'.replace("\\", "\\\\")
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
        scram = jaas.replace("plain.Plain", "scram.Scram")
        lines += f"listener.name.{name}.scram-sha-256.sasl.jaas.config={scram};\n"
    lines += f"listener.name.tls.ssl.keystore.type=PEM\nlistener.name.tls.ssl.keystore.location={both}\n"
    broker_files._SERVER = lines
    local = LocalBroker(folder / "home")
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
    with pytest.raises(StreamError) as caught:
        refused.ingest()
    assert "other" not in str(caught.value) and PASSWORD not in str(caught.value)
    assert table.queried() == [1, 2, 3] and refused.queried() == [1, 2], "answered from committed rows"
    with pytest.raises(StreamError):
        create_halves(layout_in(tmp_path / "new"), replace(spec, stream=replace(spec.stream, security=wrong)), 0)


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
        with pytest.raises(StreamError):
            view_stream(wrong, 3_000)
        assert view_stream(right).topic_ids.keys() == {topic}
        assert len(connected) == 2
