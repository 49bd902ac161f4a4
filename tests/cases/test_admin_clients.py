"""Cases of an admin client that stays connected: what changes at the broker between two looks is seen by the second."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from hybrid.config.table_config import StreamConfig
from hybrid.errors import StreamError
from hybrid.jvm.broker import LocalBroker
from hybrid.kafka import streams
from hybrid.kafka.admin_pool import AdminPool
from hybrid.kafka.clients import admin_client, connect_admin
from hybrid.kafka.streams import view_stream
from hybrid.kafka.topics import TopicRecord, create_topic, describe_topic, produce
from hybrid.query import tail
from tests.watchdog import watched_broker

pytestmark = [pytest.mark.kafka]


class Looks:
    """A broker of its own, a topic, and looks at it over a pool that counts connections."""

    def __init__(self, local: LocalBroker, pool: AdminPool, connected: list[Any]) -> None:
        self.local, self.pool, self.connected = local, pool, connected
        self.address = local.address_to_ask()
        self.topic = f"t-{uuid.uuid4().hex[:12]}"
        create_topic(self.address, self.topic, 1)
        self.stream = StreamConfig((self.topic,), self.address)

    def produce(self, count: int) -> None:
        produce(self.address, self.topic, [TopicRecord(b"{}", partition=0)] * count)

    def ends(self) -> list[int]:
        """The end offsets, by partition; statements see the same."""
        ends = view_stream(self.stream).ends
        assert tail._view(self.address, self.stream)[1] == ends
        return [end for _, end in sorted(ends.items())]


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:
    broker = watched_broker(tmp_path_factory.mktemp("admin-clients"))
    broker.start(port=0)
    yield broker
    broker.stop()


@pytest.fixture
def looks(local: LocalBroker, monkeypatch: pytest.MonkeyPatch) -> Iterator[Looks]:
    connected: list[Any] = []

    def connect(*arguments: Any) -> Any:
        connected.append(arguments)
        return connect_admin(*arguments)

    pool, before = AdminPool(connect), threading.active_count()
    for module in (streams, tail):
        monkeypatch.setattr(module, "ask_admin", pool.ask)
    with pool.keeping():
        yield Looks(local, pool, connected)
    assert threading.active_count() <= before, "all are closed"


def test_a_look_is_of_now(looks: Looks) -> None:
    assert looks.ends() == [0]
    looks.produce(3)
    assert looks.ends() == [3]
    with admin_client(looks.address, 10_000) as admin:
        admin.create_partitions({looks.topic: 3})
    deadline = monotonic() + 20
    while (found := looks.ends()) != [3, 0, 0]:
        assert monotonic() < deadline, found
    assert len(looks.connected) == 2, "one client for each timeout: of work, and of statements"


def test_a_recreated_topic_has_another_id(looks: Looks) -> None:
    looks.produce(2)
    before = view_stream(looks.stream)
    with admin_client(looks.address, 10_000) as admin:
        admin.delete_topics([looks.topic])
    deadline = monotonic() + 20
    while view_stream(looks.stream).topic_ids:
        assert monotonic() < deadline
    create_topic(looks.address, looks.topic, 1)
    after = view_stream(looks.stream)
    now = describe_topic(looks.address, looks.topic)
    assert now is not None and after.topic_ids == {looks.topic: now.id} != before.topic_ids
    assert list(before.ends.values()) == [2] and list(after.ends.values()) == [0]


def test_a_restarted_broker_is_no_error(looks: Looks) -> None:
    looks.produce(2)
    assert looks.ends() == [2]
    for _ in range(2):
        looks.local.stop()
        with pytest.raises(StreamError):
            view_stream(looks.stream)
        looks.local.start()
        assert looks.ends() == [2]
    looks.produce(1)
    assert looks.ends() == [3]


def test_a_silent_broker_ends_with_an_error_and_is_asked_again_later(looks: Looks) -> None:
    assert view_stream(looks.stream, 700).ends
    pid = looks.local.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    try:
        for _ in range(2):
            with pytest.raises(StreamError, match="does not answer"):
                view_stream(looks.stream, 700)
    finally:
        os.kill(pid, signal.SIGCONT)
    deadline = monotonic() + 20
    while True:
        try:
            assert list(view_stream(looks.stream, 700).ends.values()) == [0]
            break
        except StreamError:
            assert monotonic() < deadline
            sleep(0.1)


def test_threads_look_at_once(looks: Looks) -> None:
    looks.produce(4)
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda _: list(view_stream(looks.stream).ends.values()), range(60)))
    assert found == [[4]] * 60


_FORKED = """
import os, sys
from hybrid.config.table_config import StreamConfig
from hybrid.kafka.admin_pool import admin_clients_kept
from hybrid.kafka.streams import view_stream

stream = StreamConfig((sys.argv[1],), sys.argv[2])
with admin_clients_kept():
    before = view_stream(stream)
    child = os.fork()
    found = view_stream(stream)
if child == 0:
    sys.exit(0 if found == before else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert found == before
print("both looked")
"""


def test_a_forked_process_looks_by_itself(looks: Looks, tmp_path: Path) -> None:
    command = [sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c", _FORKED]
    done = subprocess.run(
        [*command, looks.topic, looks.address], capture_output=True, text=True, timeout=60, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "both looked\n", "")
