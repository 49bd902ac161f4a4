"""What comes between the steps of a backup: removed files, dropped tables, changed definitions, runs, kills."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.catalog.run_record import RunRequest
from hybrid.clock import wall_clock_ms
from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, DataError, MachineError, NotFoundError, QueryError, StreamError
from hybrid.kafka.streams import SilentBrokers, StreamView
from hybrid.lake import failpoints
from hybrid.operations.backups import backup_source, backup_store
from hybrid.operations.backups.backup_create import _Creation
from hybrid.operations.backups.backup_source import pin_table
from hybrid.operations.backups.backup_store import BackupStore
from hybrid.operations.backups.stream_gaps import stream_warnings
from hybrid.runtime.json_values import stamp
from hybrid.table.boundary import Boundary, TopicPartition
from tests.operations.backups.restored_homes import SQL, opened, restored
from tests.query.halves import KEY, Halves
from tests.serve.app import CONSUMING, MOVED, lay_orders, row

IDS = [1, 2, 3, 4]


def between(monkeypatch: pytest.MonkeyPatch, event: Callable[[], object], times: int = 1) -> None:
    """Lets something happen after the pin of a table and before its files are copied."""
    left, copied = [times], _Creation._store_files

    def store_files(self: Any, *args: Any) -> Any:
        if left[0]:
            left[0] -= 1
            event()
        return copied(self, *args)

    monkeypatch.setattr(_Creation, "_store_files", store_files)


def ids(hy: Hybrid) -> list[int]:
    return [found[0] for found in hy.query(SQL).rows]


@pytest.mark.slow
def test_commits_after_the_pin_are_not_in_the_backup(
    here: Hybrid, halves: Halves, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def move() -> None:
        halves.commit_realtime([row(5, 5000, 4, CONSUMING)], offsets={KEY: 5})
        moved = [row(3, 3000, 2, MOVED), row(4, 4000, 3, MOVED), row(5, 5000, 4, MOVED)]
        halves.commit_offline(moved, Boundary(5001, {KEY: 5}))

    between(monkeypatch, move)
    here.backups.create(store)
    new = restored(here, store, tmp_path / "new")
    assert ids(new) == IDS and ids(here) == [*IDS, 5]
    versions = {half: new.table("orders").half(half).version for half in Half}
    assert versions == {Half.REALTIME: 1, Half.OFFLINE: 1}
    new.close()


@pytest.mark.slow
def test_a_move_between_the_pins_of_the_halves(
    here: Hybrid, halves: Halves, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OFFLINE moves on, and REALTIME loses what was moved, between the pins: no row is lost, and none there twice."""
    from hybrid.query import revision

    original, opens = revision.open_half, [0]

    def open_half(path: Path, *args: Any) -> Any:
        opens[0] += 1
        if opens[0] == 2:
            halves.commit_offline([row(3, 3000, 2, MOVED), row(4, 4000, 3, MOVED)], Boundary(4001, {KEY: 4}))
        return original(path, *args)

    monkeypatch.setattr(revision, "open_half", open_half)
    here.backups.create(store)
    monkeypatch.undo()
    new = restored(here, store, tmp_path / "new")
    assert opens[0] == 4 and ids(new) == IDS
    assert new.table("orders").half(Half.OFFLINE).version == 2
    new.close()


@pytest.mark.slow
def test_a_file_that_is_removed_before_it_is_copied(
    here: Hybrid, halves: Halves, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a purge does it: the segment is written again, then its old file goes."""
    path = here.context.layout("orders").half(Half.OFFLINE)
    old = [file.path for file in here.table("orders").half(Half.OFFLINE).files]

    def purge() -> None:
        from deltalake import CommitProperties, DeltaTable, write_deltalake

        rows = DeltaTable(str(path)).to_pyarrow_table()
        state = json.loads((path / "_delta_log" / f"{1:020d}.json").read_text().split("\n")[-2])
        metadata = {"userMetadata": state["commitInfo"]["userMetadata"]} if "commitInfo" in state else None
        write_deltalake(str(path), rows, mode="overwrite", commit_properties=CommitProperties(custom_metadata=metadata))
        for name in old:
            os.unlink(name)

    before = str(here.query(SQL).revision)
    read = list[str]()
    put = BackupStore.put_file
    monkeypatch.setattr(BackupStore, "put_file", lambda self, path: (read.append(str(path)), put(self, path))[1])
    between(monkeypatch, purge)
    here.backups.create(store)
    entries = [path for path in read if path.endswith(".json")]
    assert len(set(entries)) == len(entries) == 5, "what was copied is not read again"
    new = restored(here, store, tmp_path / "new")
    with pytest.raises(QueryError, match="Rows of 'orders' at that revision are no longer retained"):
        new.query(SQL, as_of=before)  # a backup has no files of older versions
    assert ids(new) == IDS and new.table("orders").half(Half.OFFLINE).version == 2
    assert here.backups.verify(store).sound
    new.close()


@pytest.mark.slow
def test_a_purge_after_the_copy_comes_after_the_backup(
    here: Hybrid, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was copied before the purge is in the backup: its time and its id must say that it is from before."""
    rest, purged_at = _Creation._store_rest, list[str]()

    def store_rest(self: Any) -> None:
        time.sleep(0.005)
        purged_at.append(stamp(wall_clock_ms()))
        time.sleep(0.005)
        rest(self)

    monkeypatch.setattr(_Creation, "_store_rest", store_rest)
    made = [here.backups.create(store) for _ in range(2)]
    for report, moment in zip(made, purged_at, strict=True):
        manifest = BackupStore(store).read(report.id)
        assert report.created_at == manifest.created_at == manifest.tables[0].pinned_at < moment
        assert report.id.partition("Z-")[0] == "".join(found for found in report.created_at if found not in "-:.Z")
    assert [found.id for found in here.backups.list(store)] == [made[1].id, made[0].id]


@pytest.mark.slow
def test_a_file_that_is_missing_for_good(here: Hybrid, store: Path) -> None:
    good = here.backups.create(store).id
    shutil.rmtree(next(here.context.layout("orders").half(Half.OFFLINE).glob("_hy_segment=*")))
    BackupStore(store).object_path("0" * 64).parent.mkdir(exist_ok=True)
    with pytest.raises(DataError, match=r"Files of table 'orders' are missing. No backup was made"):
        here.backups.create(store)
    assert [found.id for found in here.backups.list(store)] == [good] and here.backups.verify(store, good).sound
    assert here.runs()[0].state == "FAILED"


@pytest.mark.slow
def test_a_table_that_is_dropped_or_created_again(
    here: Hybrid, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    between(monkeypatch, lambda: here.drop_table("orders"))
    report = here.backups.create(store)
    assert report.tables == {} and "1 dropped table: hybrid table undrop brings one back" in report.left_out
    here.undrop_table("orders")
    monkeypatch.undo()
    between(monkeypatch, lambda: here.drop_table("orders"))
    with pytest.raises(NotFoundError, match="Table 'orders' does not exist"):
        here.backups.create(store, ["orders"])
    here.undrop_table("orders")
    monkeypatch.undo()

    def again() -> None:
        here.drop_table("orders", purge=True)
        lay_orders(here)

    said = list[str]()
    monkeypatch.setattr(here.context.progress, "say", said.append, raising=False)
    monkeypatch.setattr("hybrid.progress.Silent.say", lambda _, message: said.append(message))
    between(monkeypatch, again)
    here.backups.create(store)
    assert [message for message in said if "pinned again" in message]
    new = restored(here, store, tmp_path / "new")
    assert ids(new) == IDS
    ids_of = [hy.table("orders").half(Half.OFFLINE).table_id for hy in (here, new)]
    assert ids_of[0] == ids_of[1]
    new.close()


@pytest.mark.slow
def test_documents_and_halves_are_of_one_moment(here: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    root, looks = here.context.layout("orders").root, [0]
    pin = backup_source.pin_halves

    def pin_halves(*args: Any) -> Any:
        looks[0] += 1
        if looks[0] == 1:
            (root / "plans" / "p").mkdir(parents=True)
            (root / "plans" / "p" / "plan.json").write_text("{}")
        if looks[0] == 2:
            text = (root / "definition.json").read_text()
            (root / "definition.json").write_text(text.replace("created_at", "created_at"))
        return pin(*args)

    monkeypatch.setattr(backup_source, "pin_halves", pin_halves)
    pinned = pin_table(here.context, "orders")
    assert looks[0] == 3 and set(pinned.documents) == {"definition.json", "plans/p/plan.json"}
    monkeypatch.setattr(
        backup_source, "_look", lambda _: {"definition.json": (looks.__setitem__(0, looks[0] + 1), looks[0], 0)}
    )
    with pytest.raises(ConflictError, match="was changed 100 times"):
        pin_table(here.context, "orders")


@pytest.mark.slow
def test_the_log_up_to_the_version(here: Hybrid, halves: Halves, store: Path, tmp_path: Path) -> None:
    """Checkpoints and entries beyond the version, checksums and the hint are left out, and the rest can be read."""
    from hybrid.lake.checkpoint import write_checkpoint

    path = here.context.layout("orders").half(Half.REALTIME)
    write_checkpoint(path, 1)
    log = path / "_delta_log"
    for name in (f".{0:020d}.json.crc", f"{1:020d}.crc", f"{2:020d}.json.tmp", "_commits"):
        (log / name).touch()
    (log / f"{5:020d}.checkpoint.parquet").touch()
    (log / f"{0:020d}.json").unlink()  # as the clean-up of a log does it
    here.backups.create(store)
    new = restored(here, store, tmp_path / "new")
    copied = new.context.layout("orders").half(Half.REALTIME) / "_delta_log"
    assert sorted(found.name for found in copied.iterdir()) == [f"{1:020d}.checkpoint.parquet", f"{1:020d}.json"]
    assert ids(new) == IDS
    times = [(place / f"{1:020d}.json").stat().st_mtime_ns for place in (log, copied)]
    assert times[0] == times[1]
    new.close()


@pytest.mark.slow
def test_runs_of_the_original(here: Hybrid, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What had not ended at the backup's moment is not said to be done, and not done again."""
    runs = here.context.catalog.runs
    here.context.catalog.serving.beat("pipeline", "ready")
    here.context.catalog.serving.pause("orders", "mine")
    for name in ("queued", "running", "after"):
        runs.enqueue(
            RunRequest(name, "orders", "job", "job_run", {"table": "orders"}, "cli", only_one=name == "queued")
        )
    with here.context.recorded("orders", "seal") as outcome:
        outcome.ended("Sealed.", did_something=True)
    assert runs.claim(lambda run: run.id == "running") is not None
    pin = backup_source.pin_halves

    def pin_halves(*args: Any) -> Any:
        found = pin(*args)
        runs.finish("after", "DONE", "It is there.")
        return found

    monkeypatch.setattr(backup_source, "pin_halves", pin_halves)
    here.backups.create(store)
    new = restored(here, store, tmp_path / "new")
    states = {run.id: run.state for run in new.runs("orders")}
    assert {name: states[name] for name in ("queued", "running", "after")} == dict.fromkeys(
        ("queued", "running", "after"), "INTERRUPTED"
    )
    assert [run.state for run in new.runs("orders") if run.type == "seal"] == ["DONE"]
    assert all(not run.arguments for run in new.runs("orders") if run.id in {"queued", "running"})
    assert new.context.catalog.runs.claim() is None and new.context.catalog.serving.role("pipeline") is None
    assert new.context.catalog.serving.pauses()["orders"].comment == "mine"
    assert runs.find("queued").state == "QUEUED"  # type: ignore[union-attr]
    new.close()


@pytest.mark.slow
def test_arguments_of_runs_that_have_not_ended_are_never_written(
    here: Hybrid, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may hold secrets. A full disk of the backups is named as theirs, too: the home's may have room."""
    here.context.catalog.runs.enqueue(RunRequest("q", "orders", "job", "job_run", {"password": "s3same"}, "cli"))
    written, write = list[bytes](), backup_store._write_private

    def kept(path: Path, data: bytes) -> None:
        assert not [found for found in store.rglob("*") if found.is_file() and b"s3same" in found.read_bytes()]
        written.append(data)
        write(path, data)
        assert path.stat().st_mode & 0o777 == 0o600

    monkeypatch.setattr(backup_store, "_write_private", kept)
    here.backups.create(store)
    catalogs = [data for data in written if data.startswith(b"SQLite format 3")]
    assert len(catalogs) == 1 and b"job_run" in catalogs[0] and b"s3same" not in b"".join(written)
    assert not list((store / "parts").iterdir())

    def full(path: Path) -> Any:
        if path.parent == store / "parts":
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")

    monkeypatch.setattr(backup_store, "_write_private", write)
    monkeypatch.setattr(backup_store, "_open_private", full)
    with pytest.raises(MachineError, match=f"The disk of {store / 'parts'} is full"):
        here.backups.create(store)


@pytest.mark.slow
def test_work_over_several_tables_that_ends_between_two_pins(
    here: Hybrid, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It names one table, or none, and the first table was pinned before it had ended."""
    root, runs = here.settings.warehouse, here.context.catalog.runs
    shutil.copytree(root / "orders", root / "others")
    text = (root / "others" / "definition.json").read_text()
    (root / "others" / "definition.json").write_text(text.replace('"orders"', '"others"'))
    works = [("erase", "others"), ("evolve", "others"), ("backup", "*"), ("seal", "others")]
    for when in ("before", "between"):
        for kind, table in works:
            runs.enqueue(RunRequest(f"{kind}-{when}", table, kind, "job_run", {}, "cli"))
    for kind, _ in works:
        runs.finish(f"{kind}-before", "DONE", "It is there.")
    pin, pins = pin_table, list[str]()

    def pin_tables(home: Any, name: str) -> Any:
        time.sleep(0.005)
        if pins:
            for kind, _ in works:
                runs.finish(f"{kind}-between", "DONE", "It is there.")
            time.sleep(0.005)
        pins.append(name)
        return pin(home, name)

    monkeypatch.setattr("hybrid.operations.backups.backup_create.pin_table", pin_tables)
    here.backups.create(store)
    assert pins == ["orders", "others"]
    new = restored(here, store, tmp_path / "new")
    states = {run.id: run.state for run in new.runs()}
    assert {kind: states[f"{kind}-between"] for kind, _ in works} == {
        "erase": "INTERRUPTED", "evolve": "INTERRUPTED", "backup": "INTERRUPTED", "seal": "DONE",
    }  # fmt: skip
    assert {states[f"{kind}-before"] for kind, _ in works} == {"DONE"}
    new.close()


@pytest.mark.slow
def test_only_named_tables(here: Hybrid, store: Path, tmp_path: Path) -> None:
    root = here.settings.warehouse
    shutil.copytree(root / "orders", root / "others")
    text = (root / "others" / "definition.json").read_text()
    (root / "others" / "definition.json").write_text(text.replace('"orders"', '"others"'))
    for name in ("orders", "others"):
        here.context.catalog.serving.pause(name)
    part = here.backups.create(store, ["others"])
    whole = here.backups.create(store)
    assert part.tables.keys() == {"others"} and whole.tables.keys() == {"orders", "others"}
    assert [found.state for found in here.backups.list(store)] == ["WHOLE", "PARTIAL"]
    assert whole.files_new < part.files_new  # the copy of the table has the same files
    for number, (backup, options) in enumerate(((part.id, {}), (whole.id, {"tables": ["others"]}))):
        new = restored(here, store, tmp_path / f"new{number}", backup, **options)
        assert new.table_names() == ["others"] and set(new.context.catalog.serving.pauses()) == {"others"}
        new.close()


def test_what_kafka_no_longer_holds(here: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    place, view = TopicPartition("orders", 0), [StreamView({"orders": "i"}, {}, {})]
    monkeypatch.setattr(SilentBrokers, "view", lambda *_: view[0])

    def warnings(first: int, last: int) -> list[str]:
        view[0] = StreamView({"orders": "i"}, {place: first}, {place: last})
        return stream_warnings(here.context, "orders")

    assert warnings(0, 9) == [] and warnings(4, 9) == []
    (gap,) = warnings(7, 9)
    assert gap.startswith("Table 'orders', topic 'orders', partition 0: Kafka no longer holds the offsets 4 to 6 (3")
    (short,) = warnings(0, 3)
    assert "it now ends at 3: the topic was truncated or refilled" in short

    def silent(*_: Any) -> StreamView:
        raise StreamError("Kafka at b:1 does not answer.")

    monkeypatch.setattr(SilentBrokers, "view", silent)
    assert stream_warnings(here.context, "orders") == ["Table 'orders': Kafka at b:1 does not answer."]


# A backup, a restore and a deletion, in a child that dies at a step. Threads of deltalake do not outlive a fork, so the
# parent of the children does nothing but import.
_CHILDREN = """
import json, os, sys
from pathlib import Path
from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.operations.backups import backup_create, backup_delete, backup_restore, backup_verify, backups
from hybrid.progress import Silent
import hybrid.query.engine, hybrid.catalog.catalog
home, store = Path(sys.argv[1]), Path(sys.argv[2])
for line in sys.stdin:
    point, verb, argument, target = json.loads(line)
    pid = os.fork()
    if pid == 0:
        os.environ["HYBRID_FAILPOINT"] = point
        hy = Hybrid(load_settings(home=Path(target) if verb == "restore" else home), Silent())
        try:
            getattr(hy.backups, verb)(store, *([argument] if argument else []))
        except Exception as error:
            print(repr(error), file=sys.stderr)
            os._exit(3)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


class Children:
    """Processes that make, restore or delete backups, and die at a step."""

    def __init__(self, home: Path, store: Path) -> None:
        command = [sys.executable, "-c", _CHILDREN, str(home), str(store)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ends(self, point: str, verb: str, argument: str | None = None, target: Path | None = None) -> int:
        """The exit code of one that has this failpoint; -9 if it was killed."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps([point, verb, argument, str(target)]) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@pytest.fixture
def children(here: Hybrid, store: Path) -> Iterator[Children]:
    made = Children(here.home, store)
    yield made
    made.close()


@pytest.mark.process
def test_killed_at_every_step(here: Hybrid, halves: Halves, store: Path, tmp_path: Path, children: Children) -> None:
    killed = -signal.SIGKILL
    points = [f"{name}@{time}" for name in failpoints.STEPS[:4] for time in (1, 2, 4) if name != "backup.pinned"]
    created = ["backup.pinned", *points, "backup.manifest", "backup.published"]
    good = list[str]()
    for number, point in enumerate(created):
        offset = 4 + number
        halves.commit_realtime([row(10 + number, 5000, offset, CONSUMING)], offsets={KEY: offset + 1})
        code = children.ends(point, "create")
        assert code in {killed, 0}, point  # a backup of few files does not pass each point so often
        found = [summary.id for summary in here.backups.list(store)] if store.exists() and code == 0 else None
        if (store / "hybrid-backup.json").exists():
            backups = here.backups.list(store)
            assert len(backups) - len(good) == (code == 0 or point == "backup.published"), point
            assert all(summary.state == "WHOLE" for summary in backups)
            assert here.backups.verify(store).sound if backups else True
            good = [summary.id for summary in backups]
        assert found is None or found[0] in good
    last = here.backups.create(store).id
    for number, point in enumerate(("restore.file@1", "restore.file@5", "restore.copied", "restore.renamed")):
        target = tmp_path / f"new{number}"
        assert children.ends(point, "restore", last, target) == killed
        assert target.exists() == (point == "restore.renamed")
        new = restored(here, store, target, last) if point != "restore.renamed" else opened(target)
        assert ids(new) == ids(here) and not list(tmp_path.glob(".new*"))
        new.close()
    for point in ("backup.withdrawn", "backup.removed@1"):
        victim = here.backups.list(store)[-1].id
        assert children.ends(point, "delete", victim) == killed
        remaining = [summary.id for summary in here.backups.list(store)]
        assert victim not in remaining and last in remaining and here.backups.verify(store).sound
    here.backups.delete(store, here.backups.list(store)[-1].id)
    assert here.backups.verify(store).findings == ()
    assert set(failpoints.STEPS) == {point.partition("@")[0] for point in [*created, *_LATER]}


_LATER = ("backup.withdrawn", "backup.removed@1", "restore.file@1", "restore.copied", "restore.renamed")
