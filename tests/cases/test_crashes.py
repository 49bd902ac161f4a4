"""A process dies at every failpoint in turn and is started again; and two processes act on one half at once."""

import json
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hybrid.config.table_config import Half
from hybrid.kafka.topics import create_topic
from hybrid.lake.failpoints import POSITIONS
from hybrid.lake.log_entries import own_states
from tests.cases.tables import HOUR, LiveTable, layout_in, table_spec
from tests.cases.test_streams import recreate_topic
from tests.shared_jvm import ROOT, die_at, dying_at
from tests.soak.harness import JVM_OPTIONS

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

FLUSH_MS = 60_000
NOW = 10 * HOUR


class Workers:
    """A table that other processes act on, and this one too."""

    def __init__(self, brokers: str, folder: Path, workbench, **options) -> None:
        topic = f"t-{uuid.uuid4().hex[:12]}"
        create_topic(brokers, topic)
        self.document = folder / "table.json"
        self.document.write_text(
            json.dumps({"brokers": brokers, "topic": topic, "folder": str(folder), "options": options})
        )
        self.table = LiveTable(table_spec(brokers, topic, **options), layout_in(folder), workbench, NOW)
        self.produced: list[int] = []
        self.broken: list[int] = []

    def produce(self, good: int, bad: int = 0) -> None:
        """Rows of closed buckets, spread over four of them, and messages that are no rows."""
        first = len(self.produced) + len(self.broken)
        ids = list(range(first, first + good))
        self.table.produce(*({"id": number, "key": "k", "ts": number % 4 * HOUR} for number in ids))
        self.table.produce(*[b"{"] * bad)
        self.produced += ids
        self.broken += range(first + good, first + good + bad)

    def die(self, act: str, failpoint: str) -> None:
        """Another process acts, and dies at the failpoint."""
        die_at(failpoint, self.table.shared, "tests.cases.worker", str(self.document), act)

    @contextmanager
    def started(self, *acts: str) -> Iterator[subprocess.Popen[str]]:
        command = [sys.executable, "-m", "tests.cases.worker", str(self.document), *acts]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(command, cwd=ROOT, env={**dying_at(""), **JVM_OPTIONS}, **pipes) as process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, *acts: str) -> tuple[int, str]:
        """The return code, and what was written."""
        with self.started(*acts) as process:
            out, errors = process.communicate(timeout=170)
            return process.returncode, out + errors

    def check(self) -> None:
        assert self.table.visible() == self.table.queried() == self.produced
        assert self.table.rejected() == {(0, offset) for offset in self.broken}
        for half in Half:
            snapshot = self.table.half(half)
            numbers = [state.act.number for _, state in own_states(snapshot.path, snapshot.version)]
            assert numbers == list(range(snapshot.version, -1, -1)), "one act a version, none twice"


@pytest.fixture
def workers(broker, workbench, tmp_path):
    return lambda **options: Workers(broker, tmp_path, workbench, **options)


def test_a_creation_that_dies_anywhere_is_done_by_the_next(workers):
    ours = workers(flush_ms=FLUSH_MS)
    for failpoint in ["create.commit.before", "create.commit.inside", "create.commit.after", "create.commit.before@2"]:
        ours.die(f"create@{NOW}", failpoint)
    assert ours.run(f"create@{NOW}")[1] == "created\n"
    ours.produce(2)
    ours.table.ingest()
    ours.check()
    assert ours.run(f"create@{NOW}")[1] == "created\n", "the next one finds it recorded"
    ours.check()


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", ["ingest", "seal", "move"])
def test_an_act_that_dies_anywhere_is_done_by_the_next(workers, kind):
    """Each death comes on top of the one before, and nothing is there twice.

    Those that leave an orphaned JVM, which whoever comes next ends, are in tests/soak/test_crash.py.
    """
    ours = workers(flush_ms=FLUSH_MS)
    ours.table.create()
    act = {"ingest": f"ingest@{NOW}", "seal": f"ingest@{NOW + FLUSH_MS}", "move": f"move@{NOW}"}[kind]
    for position in POSITIONS:
        ours.produce(3, bad=1)
        if kind != "ingest":
            ours.table.ingest()  # here, where a JVM runs already
        ours.die(act, f"{kind}.commit.{position}")
        seen = ours.table.queried()
        assert seen == ours.produced, "every row once, at any moment"
    ours.produce(1)
    ours.table.ingest()
    ours.table.move(None)
    ours.check()
    assert sum(ours.table.segments().values()) == len(ours.produced)
    assert not [path for path in (ours.table.layout.root / "staging").glob("*") if path.is_dir()], "swept"


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_replay_that_dies_anywhere_is_done_by_the_next(workers):
    """Rows are rejected or in the table, each once, whenever one looks."""
    ours = workers()
    ours.table.create()
    brought: set[int] = set()
    strict = ours.table.spec
    for number, position in enumerate(POSITIONS):
        ours.produce(1)
        odd = [100 + 2 * number, 101 + 2 * number]
        ours.table.produce(*({"id": one, "key": "k", "ts": 0, "value": "much"} for one in odd))
        ours.table.ingest()
        ours.die(f"replay@{NOW}", f"replay.commit.{position}")
        seen = ours.table.queried()
        assert seen == sorted(set(seen)) and {*ours.produced, *brought} <= set(seen), "every row at most once"
        ours.table.lenient().replay()
        brought |= set(odd)
        ours.table.spec = strict
        ours.table.move(None)
        assert ours.table.visible() == ours.table.queried() == sorted([*ours.produced, *brought])
        assert ours.table.half(Half.REALTIME).realtime.rejected == 0


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_reset_that_dies_is_done_or_not_done(workers):
    """Before its commit nothing has changed; after it the stream is read on, and once more finds nothing to do."""
    ours = workers()
    ours.table.create()
    for position in ("before", "after"):
        ours.produce(2)
        ours.table.ingest()
        recreate_topic(ours.table)
        ours.produce(1)
        ours.die(f"reset@{NOW}", f"reset.commit.{position}")
        is_done = ours.table.reset("earliest").version is None
        assert is_done == (position == "after")
        ours.table.ingest()
        assert ours.table.visible() == ours.table.queried() == ours.produced
        ours.table.move(None)
        assert ours.table.visible() == ours.table.queried() == ours.produced


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_two_jvms_on_one_local_table(workers):
    """Batches of three offsets from two processes at once: the lock lets one act at a time, the other plans anew."""
    ours = workers(flush_rows=5)
    ours.table.create()
    ours.produce(15)
    with ours.started(f"ingest/3@{NOW}", f"move@{NOW}") as other:
        while ours.table.half(Half.REALTIME).version == 0 and other.poll() is None:
            time.sleep(0.1)  # its JVM starts; then both are at it
        ours.table.ingest(batch_offsets_max=3)
        ours.table.move(None)
        out, errors = other.communicate(timeout=170)
    assert other.returncode == 0, out + errors
    ours.check()
    assert sum(ours.table.segments().values()) == 15
