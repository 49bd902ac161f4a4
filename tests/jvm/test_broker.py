from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from hybrid.cli.main import run
from hybrid.errors import ConflictError, MachineError, StreamError
from hybrid.jvm import broker_files
from hybrid.jvm.broker import LocalBroker
from hybrid.jvm.log4j import escaped
from hybrid.jvm.process import Process
from hybrid.kafka import topics
from hybrid.kafka.topics import TopicRecord, create_topic, delete_topic, describe_topic, list_topics, produce
from tests.recorded_progress import Heard
from tests.watchdog import watched_broker


@pytest.mark.kafka
def test_life_of_a_broker(tmp_path: Path) -> None:
    local, heard = watched_broker(tmp_path / "hö me", formats=True), Heard()
    assert (local.status().state, local.stop()) == ("stopped", False)
    try:
        address = local.start(0, heard)
        running = local.status()
        assert (running.state, running.address) == ("running", address)
        assert running.pid is not None and os.getsid(running.pid) == running.pid  # survives whoever started it
        assert local.start(0, heard) == address
        assert heard.said[-1] == f"Kafka runs already at {address} (pid {running.pid})"
        create_topic(address, "kept", 2)
        with pytest.raises(MachineError, match="in use"):
            LocalBroker(tmp_path / "other").start(int(address.rpartition(":")[2]))
        assert local.stop()
        assert local.status().state == "stopped"
        assert Process.of(running.pid) is None
        assert [one.name for one in list_topics(local.start(0))] == ["kept"]
    finally:
        local.stop()
    assert "started" in local.log.read_text()


@pytest.mark.process
def test_a_stranger_is_never_stopped(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        local = LocalBroker(tmp_path)
        local.folder.mkdir(parents=True)
        record = {"pid": stranger.pid, "started": "another time", "address": "127.0.0.1:9"}
        (local.folder / "broker.json").write_text(json.dumps(record))
        assert local.status().state == "stopped"
        assert not local.stop()
        assert stranger.poll() is None
        stranger.communicate(b"\n")


def test_port_in_use(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(MachineError, match=f"Port {port} of 127.0.0.1 is in use") as caught:
            LocalBroker(tmp_path).start(port)
        assert "--port" in str(caught.value.hint)


def test_path_in_a_java_properties_file() -> None:
    assert escaped(Path("/a b/ö/😀")) == "/a b/\\u00f6/\\ud83d\\ude00"


@pytest.mark.kafka
def test_create_is_idempotent_but_not_blind(broker: str, topic: str) -> None:
    made, is_new = create_topic(broker, topic)
    assert not is_new
    assert describe_topic(broker, topic) == made
    assert len(made.id) == 36
    with pytest.raises(ConflictError, match="1 partition, not 3"):
        create_topic(broker, topic, 3)
    with pytest.raises(StreamError, match="cannot be a topic"):
        create_topic(broker, "a/b")


@pytest.mark.kafka
def test_delete(broker: str, capsys: pytest.CaptureFixture[str]) -> None:
    made, _ = create_topic(broker, "mistaken", 2)
    command = ["kafka", "topic", "delete", "mistaken", "--kafka", broker]
    assert run(command) == 2, "there is no terminal to ask on"
    assert "Delete topic 'mistaken' (2 partitions) at" in capsys.readouterr().err
    assert describe_topic(broker, "mistaken") == made
    assert run([*command, "--yes"]) == 0 and "Topic 'mistaken' deleted" in capsys.readouterr().err
    again, is_new = create_topic(broker, "mistaken")
    assert is_new and again.id != made.id, "the brokers had forgotten it"
    delete_topic(broker, "mistaken")
    assert run(command) == 1 and "Topic 'mistaken' does not exist at" in capsys.readouterr().err
    with pytest.raises(StreamError, match="is Kafka's own"):
        delete_topic(broker, "__consumer_offsets")


def test_brokers_that_delete_no_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error of the client has the bytes of its request."""
    from kafka.errors import TopicDeletionDisabledError

    class Admin:
        def __enter__(self) -> Admin:
            return self

        def __exit__(self, *_: object) -> None:
            return None

        def describe_topics(self, names: list[str]) -> list[dict[str, object]]:
            return [{"name": name, "topic_id": "1", "partitions": [{"partition_index": 0}]} for name in names]

        def delete_topics(self, names: list[str]) -> None:
            raise TopicDeletionDisabledError("Request 'x' failed with response 'y'")

    monkeypatch.setattr(topics, "_admin", lambda brokers: Admin())
    with pytest.raises(StreamError, match="The brokers at k:9092 delete no topics") as caught:
        delete_topic("k:9092", "kept")
    assert "delete.topic.enable" in str(caught.value.hint)


@pytest.mark.kafka
def test_produce(broker: str) -> None:
    from kafka import KafkaConsumer, TopicPartition

    create_topic(broker, "produced", 2)
    records = [b"plain", TopicRecord(b"keyed", key=b"k", timestamp_ms=1_000), TopicRecord(None, key=b"k", partition=0)]
    assert produce(broker, "produced", records, partition=1) == 3
    assert produce(broker, "produced", []) == 0
    with_all = [TopicPartition("produced", 0), TopicPartition("produced", 1)]
    consumer = KafkaConsumer(bootstrap_servers=broker, auto_offset_reset="earliest", consumer_timeout_ms=5_000)
    try:
        consumer.assign(with_all)
        seen = sorted((one.partition, one.offset, one.key, one.value) for one in (next(consumer) for _ in range(3)))
    finally:
        consumer.close()
    assert seen == [(0, 0, b"k", None), (1, 0, None, b"plain"), (1, 1, b"k", b"keyed")]


@pytest.mark.kafka
def test_produce_to_what_is_not_there(broker: str, topic: str) -> None:
    with pytest.raises(StreamError) as caught:
        produce(broker, "nope", [b"x"])
    assert str(caught.value) == (f"Topic 'nope' does not exist at {broker}. Create it: hybrid kafka topic create nope")
    with pytest.raises(StreamError, match="there is no partition 1"):
        produce(broker, topic, [b"x"], partition=1)
    with pytest.raises(StreamError, match="max_request_size"):
        produce(broker, topic, [b"x" * 2_000_000])


@pytest.mark.parametrize("brokers", ["127.0.0.1:1", "127.0.0.1:1,127.0.0.1:2"])
def test_nobody_there(brokers: str) -> None:
    with pytest.raises(StreamError, match=f"Kafka at {brokers} cannot be reached: Connection refused") as caught:
        list_topics(brokers)
    assert "hybrid kafka start" in str(caught.value.hint)


@pytest.mark.parametrize("brokers", ["localhost", "http://x", ""])
def test_no_address(brokers: str) -> None:
    with pytest.raises(StreamError, match="is no Kafka address"):
        list_topics(brokers)


def test_the_port_of_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[int] = []
    monkeypatch.setattr(LocalBroker, "_start", lambda self, port, said: started.append(port) or f"127.0.0.1:{port}")
    local, heard = LocalBroker(tmp_path), Heard()
    local.start()
    broker_files.write(local.folder, local.log, 19095, 19096)
    local.start()
    local.start(19097, heard)
    assert started == [9092, 19095, 19097]
    assert heard.said == ["Kafka listened on port 19095 before: tables that read from there need it again."]


def test_another_port_than_the_one_it_runs_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hybrid.jvm.broker.cluster_answers", lambda address: True)
    local = LocalBroker(tmp_path)
    local.folder.mkdir()
    own = Process.of(os.getpid())
    assert own is not None
    own.save(local.folder / "broker.json", address="127.0.0.1:19095")
    for port in (None, 0, 19095):
        assert local.start(port) == "127.0.0.1:19095"
    with pytest.raises(ConflictError, match=r"runs already at 127.0.0.1:19095 .*, not on port 19096") as no:
        local.start(19096)
    assert "hybrid kafka stop" in str(no.value.hint)
