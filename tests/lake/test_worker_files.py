"""Files that Spark's workers put on the store themselves: what may go wrong, and how each sequence ends (ADR 65).

A worker is simulated by what it runs, `WorkerFiles.opened`; tests/lake/test_spark_elsewhere.py has real ones.
"""

from __future__ import annotations

import errno
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark import cloudpickle

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, HybridError, MachineError, RegistryError, StoreError
from hybrid.lake import failpoints, files, worker_files
from hybrid.lake.commit import FileAct, Written, commit_files
from hybrid.lake.create import arrow_schema, record_batch
from hybrid.lake.failpoints import WORKER_STEPS
from hybrid.lake.layout import statistics_columns
from hybrid.lake.log import open_half
from hybrid.lake.store_log import align
from hybrid.lake.store_vacuum import remove_from_store
from hybrid.lake.worker_files import StoreAccess, WorkerFiles, bring_uploaded, worker_folder
from hybrid.lake.workers import error_from_json, error_to_json
from hybrid.store.store_backend import StoreTuning
from hybrid.table.columns import SEGMENT
from tests.every_type import every_type
from tests.lake.test_store_log import Killed, another, environment, fence, on_store, proxy, url, writer
from tests.lake.test_transaction import COLUMNS, after, rows_of
from tests.mirrors import Writer
from tests.s3_server import needs_s3
from tests.store.store_proxy import StoreProxy, lose_request, pass_on, refuse
from tests.store_servers import StoreServer, store_server

__all__ = ["environment", "proxy", "url", "writer"]  # fixtures
pytestmark = [pytest.mark.process, needs_s3]

DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    """Workers write to S3 stores only."""
    with store_server("s3", tmp_path_factory.mktemp("s3")) as found:
        yield found


def place_of(writer: Writer, **tuning: float) -> WorkerFiles:
    access = StoreAccess.of_process(writer.url, StoreTuning(**tuning))
    return WorkerFiles(writer.half, False, access, writer.mirror.key_of(writer.half))


def work(place: WorkerFiles, *segments: str) -> list[dict[str, object]]:
    """What a task does: a file with a row for each of some segments. Returns the entries."""
    schema, entries = arrow_schema(every_type(), Half.REALTIME), []
    with place.opened("ingest-9", statistics_columns(every_type(), Half.REALTIME)) as found:
        for segment in segments:
            row = record_batch(schema, rows_of(segment)).drop_columns([SEGMENT])
            found.open(segment).write(row)
            entries.append(found.close(segment))
    return entries


def commit(writer: Writer, entries: list[dict[str, object]]) -> int:
    """What the driver does with the entries of all tasks."""

    def write() -> Written:
        bring_uploaded(writer.half, entries)
        return Written(entries, after(writer.half))

    return commit_files(cast("Any", None), FileAct(writer.half, "ingest", "ingest-9", COLUMNS), write)


def objects(writer: Writer) -> list[str]:
    """The data files on the store, by the names of their segments' folders."""
    listed = writer.mirror.client.list_below(writer.mirror.key_of(writer.half))
    return sorted(item.key.split("/")[2] for item in listed if "_delta_log" not in item.key)


def local(writer: Writer) -> list[str]:
    return sorted(path.parent.name for path in writer.half.glob("*/*.parquet"))


@pytest.fixture
def local_dirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where Spark lets its workers write."""
    folder = tmp_path / "worker"
    folder.mkdir()
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{folder},/elsewhere")
    return folder


def die_at(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    def step(passed: str) -> None:
        if passed == name:
            raise Killed

    monkeypatch.setattr(worker_files, "step", step)


def test_what_workers_upload_is_committed_without_a_second_upload(
    writer: Writer, server: StoreServer, local_dirs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = work(place_of(writer), "a", "b c")
    assert len(objects(writer)) == 2
    assert (writer.segments(), local(writer), list(local_dirs.iterdir())) == ([], [], []), "nobody sees them"
    uploads = list[str]()
    monkeypatch.setattr(writer.mirror.client, "upload_file", lambda key, *_: uploads.append(key))
    commit(writer, entries)
    assert (writer.segments(), on_store(writer, server), uploads) == (["a", "b c"], ["a", "b c"], [])
    assert open_half(writer.half).table.to_pyarrow_table().num_rows == 2


def test_a_retried_and_a_speculative_task_leave_files_that_nobody_names(writer: Writer, server: StoreServer) -> None:
    place = place_of(writer)
    work(place, "a")  # its worker was lost before it could answer
    commit(writer, work(place, "a"))
    work(place, "a")  # a copy of the task that was still running
    assert len(objects(writer)) == 3 and writer.segments() == on_store(writer, server) == ["a"]
    half = open_half(writer.half)
    assert remove_from_store(writer.mirror, half, [], DAY_MS) == 0, "they may be of a batch that is not committed yet"
    time.sleep(1.1)  # the store gives whole seconds
    assert remove_from_store(writer.mirror, half, [], 0) == 2
    assert objects(writer) == [f"{SEGMENT}={name}" for name in on_store(writer, server)]


@pytest.mark.parametrize("step", WORKER_STEPS)
def test_a_process_that_is_killed_at_a_step_leaves_nothing_visible(
    writer: Writer, server: StoreServer, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    assert step in (*failpoints.STEPS, *failpoints.STORE_STEPS, *failpoints.WORKER_STEPS)
    with monkeypatch.context() as patch:
        die_at(patch, step)
        with pytest.raises(Killed):
            commit(writer, work(place_of(writer), "a"))
    assert len(objects(writer)) == (0 if step == "worker.written" else 1)
    assert (writer.segments(), on_store(writer, server)) == ([], [])
    commit(writer, work(place_of(writer), "a"))
    assert writer.segments() == on_store(writer, server) == ["a"]


def test_workers_of_a_home_that_lost_the_warehouse_change_nothing(
    writer: Writer, server: StoreServer, tmp_path: Path
) -> None:
    commit(writer, work(place_of(writer), "a"))
    place = place_of(writer)
    entries = work(place, "b")
    other = another(writer, tmp_path, "b")
    claim = other.mirror.ownership.look()
    assert claim is not None
    other.mirror.ownership.take_over(claim)
    fence(other)
    entries += work(place, "c")  # a zombie
    Writer.at(writer.folder, writer.url)
    with pytest.raises(ConflictError, match="another home"):
        commit(writer, entries)
    assert writer.segments() == on_store(other, server) == ["a"]
    commit(other, work(place_of(other), "d"))
    assert on_store(other, server) == ["a", "d"]


@pytest.mark.parametrize("bytes_there", [None, b"short"])
def test_a_file_that_the_store_does_not_have_as_the_worker_said(
    writer: Writer, server: StoreServer, bytes_there: bytes | None
) -> None:
    entries = work(place_of(writer), "a", "b")
    key = next(item.key for item in writer.mirror.client.list_below() if f"{SEGMENT}=a" in item.key)
    writer.mirror.client.delete(key)
    if bytes_there is not None:
        writer.mirror.client.upload(key, bytes_there)
    there = "nothing" if bytes_there is None else "5 bytes"
    with pytest.raises(StoreError, match=f"the store has {there}. Nothing was committed"):
        commit(writer, entries)
    assert (writer.segments(), local(writer), on_store(writer, server)) == ([], [], [])


def test_a_store_that_is_silent_while_files_are_brought(writer: Writer, proxy: StoreProxy, server: StoreServer) -> None:
    entries = work(place_of(writer), "a")
    impatient = Writer.at(writer.folder, writer.url)
    impatient.mirror.tuning = StoreTuning(patience_s=0.3)
    impatient.mirror.require_writable()
    proxy.always = lose_request
    with pytest.raises(StoreError, match="does not answer"):
        commit(impatient, entries)
    proxy.always = pass_on
    assert (impatient.segments(), local(impatient)) == ([], [])
    commit(impatient, entries)  # they are still there
    assert impatient.segments() == on_store(impatient, server) == ["a"]


REFUSALS = {
    "AccessDenied": "permission",
    "ExpiredToken": "expired",
    "RequestTimeTooSkewed": "clock",
    "InvalidAccessKeyId": "credentials",
}


@pytest.mark.parametrize(
    ("treatment", "fault"),
    [(lose_request, "unreachable"), *((refuse(403, code), fault) for code, fault in REFUSALS.items())],
    ids=["silence", *REFUSALS],
)
def test_a_store_that_fails_a_worker(
    writer: Writer, proxy: StoreProxy, local_dirs: Path, treatment: Any, fault: str
) -> None:
    proxy.always = treatment
    with pytest.raises(StoreError) as raised:
        work(place_of(writer, patience_s=0.3), "a")
    told = error_from_json(error_to_json(raised.value))
    assert isinstance(told, StoreError) and (told.fault, str(told), told.hint) == (
        fault, str(raised.value), raised.value.hint,
    )  # fmt: skip
    assert list(local_dirs.iterdir()) == []
    proxy.always = pass_on
    commit(writer, work(place_of(writer), "a"))
    assert writer.segments() == ["a"]


def test_a_store_that_comes_back_within_a_workers_patience(writer: Writer, proxy: StoreProxy) -> None:
    silent = iter([lose_request] * 3)
    proxy.always = lambda request, send: next(silent, pass_on)(request, send)
    commit(writer, work(place_of(writer, patience_s=20), "a"))
    assert writer.segments() == ["a"]


def test_a_workers_disk_that_is_full(writer: Writer, local_dirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class FullWriter:
        def __init__(self, *_: object, **__: object) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(files.pq, "ParquetWriter", FullWriter)
        with pytest.raises(MachineError, match=r"The disk of the Spark worker on .* is full") as raised:
            work(place_of(writer), "a")
    assert str(local_dirs) in str(raised.value) and "SPARK_LOCAL_DIRS" in str(raised.value.hint)
    assert (list(local_dirs.iterdir()), objects(writer)) == ([], [])
    assert isinstance(error_from_json(error_to_json(raised.value)), MachineError)


def test_another_error_of_a_worker_stays(local_dirs: Path) -> None:
    with pytest.raises(PermissionError), worker_folder():
        raise PermissionError(errno.EACCES, "no")
    assert list(local_dirs.iterdir()) == []


def test_the_registrys_error_is_returned_as_before() -> None:
    told: HybridError = error_from_json(error_to_json(RegistryError("It is away.", hint="Wait.")))
    assert (type(told), str(told), told.hint) == (RegistryError, "It is away.", "Wait.")


def test_keys_travel_in_the_function_and_are_shown_nowhere(
    writer: Writer, server: StoreServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_WEB_IDENTITY_TOKEN_FILE", str(tmp_path / "token"))
    place = place_of(writer)
    secret = server.environment["AWS_SECRET_ACCESS_KEY"]
    assert secret not in repr(place) and "FILE" not in str(place.store and place.store.variables)
    sent = cloudpickle.dumps(lambda: work(place, "a"))  # as PySpark does
    for name in (*server.environment, "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_REGION", "mine")
    entries = pickle.loads(sent)()
    assert worker_files.os.environ["AWS_REGION"] == "mine" and "AWS_SECRET_ACCESS_KEY" not in worker_files.os.environ
    assert len(entries) == 1 and secret not in str(entries)


def test_a_home_without_a_store_writes_to_its_folders_as_before(tmp_path: Path) -> None:
    place = WorkerFiles(tmp_path / "REALTIME", False)
    (entry,) = work(place, "a")
    assert (place.half / str(cast("Any", entry)["add"]["path"])).is_file()


def test_many_files_are_brought_at_once(writer: Writer, server: StoreServer) -> None:
    place = place_of(writer)
    commit(writer, [entry for task in range(3) for entry in work(place, *(f"{task}-{number}" for number in range(4)))])
    assert len(writer.segments()) == len(on_store(writer, server)) == 12
    assert align(writer.mirror, writer.half) == 0, "mirror and store are the same"
