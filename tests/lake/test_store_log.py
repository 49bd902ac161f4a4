"""Commits to a half whose warehouse is on an object store: the store decides, and the mirror follows it."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from hybrid.errors import ConflictError, DataError, MachineError, OvertakenError, SpecError, StoreError
from hybrid.lake import store_log
from hybrid.lake.entry import Put, commit_info, entry_text, put_entry
from hybrid.lake.failpoints import STORE_STEPS
from hybrid.lake.log import open_half
from hybrid.lake.store_log import staged_entry
from hybrid.lake.transaction import LogTransaction
from hybrid.operations.warehouse.pull import fence_half
from hybrid.store.mirror import DEFINITION_FILE, Mirror, configure, mark, new_half_key, read_mark
from hybrid.store.ownership import WarehouseOwner
from hybrid.store.store_backend import StoreTuning
from tests.every_type import every_type
from tests.lake.test_files import write
from tests.lake.test_transaction import COLUMNS, ODD_NAMES, add, after, foreign, rows_of, segments
from tests.mirrors import Writer, new_url
from tests.store.store_proxy import StoreProxy, lose_answer, lose_request, refuse, store_proxy
from tests.store_servers import KINDS, StoreServer, store_server

pytestmark = [pytest.mark.process]

KILLED = [("staged", False), ("uploaded", False), ("put", True), ("linked", True)]
NOTE = entry_text([commit_info("note", 0, is_append=True)])


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoreServer]:
    with store_server(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


@pytest.fixture(autouse=True)
def environment(server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def url(server: StoreServer) -> str:
    """A prefix of its own."""
    return new_url(server.kind)


@pytest.fixture
def writer(tmp_path: Path, url: str) -> Writer:
    return Writer.at(tmp_path / "a" / "warehouse", url).create()


@pytest.fixture
def proxy(server: StoreServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[StoreProxy]:
    with store_proxy(server) as found:
        for name in server.environment:
            monkeypatch.delenv(name)
        for name, value in found.environment.items():
            monkeypatch.setenv(name, value)
        yield found


@pytest.fixture
def impatient(tmp_path: Path, proxy: StoreProxy, url: str) -> Writer:
    """A writer behind the proxy that gives up soon."""
    writer = Writer.at(tmp_path / "a" / "warehouse", url)
    writer.mirror.tuning = StoreTuning(patience_s=0.4)
    return writer.create()


def on_store(writer: Writer, server: StoreServer) -> list[str]:
    """The segments of the half, as another engine reads it on the store."""
    table = DeltaTable(writer.table_url, storage_options=server.options)
    return sorted(row["partition._segment"] for row in _adds(table))


def _adds(table: DeltaTable) -> list[dict[str, str]]:
    import pyarrow as pa

    rows = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    return [{"partition._segment": next(row[name] for name in row if name.startswith("partition."))} for row in rows]


def another(writer: Writer, tmp_path: Path, owner: str = "a") -> Writer:
    """A copy of the writer's folder, as on another host."""
    folder = tmp_path / f"copy-{owner}" / "warehouse"
    shutil.copytree(writer.folder, folder)
    return Writer.at(folder, writer.url, owner)


def test_a_commit_is_on_the_store_and_in_the_mirror(writer: Writer, server: StoreServer) -> None:
    for name in ("a", "b", *ODD_NAMES):
        add(writer.half, name)
    assert writer.segments() == on_store(writer, server) == sorted(["a", "b", *ODD_NAMES])
    rows = DeltaTable(writer.table_url, storage_options=server.options).to_pyarrow_table().num_rows
    assert rows == len(ODD_NAMES) + 2
    assert not staged_entry(writer.half).exists()


def test_the_store_has_a_checkpoint_every_ten_commits(writer: Writer, server: StoreServer) -> None:
    for number in range(12):
        add(writer.half, "a", number)
    names = {
        item.key.rpartition("/")[2]
        for item in writer.mirror.client.list_below(f"{writer.mirror.key_of(writer.half)}/_delta_log")
    }
    assert {f"{10:020d}.checkpoint.parquet", "_last_checkpoint"} <= names
    assert len(on_store(writer, server)) == 12


class Killed(BaseException):
    """As if the process had died here."""


def test_every_step_is_killed_in_a_test() -> None:
    assert {name for name, _ in KILLED} == {name.removeprefix("store.") for name in STORE_STEPS}


@pytest.mark.parametrize(("step", "is_done"), KILLED)
def test_a_kill_at_each_step(
    writer: Writer, server: StoreServer, monkeypatch: pytest.MonkeyPatch, step: str, is_done: bool
) -> None:
    add(writer.half, "first")

    def die(name: str) -> None:
        if name == f"store.{step}":
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(store_log, "step", die)
        add(writer.half, "second")
    assert on_store(writer, server) == ["first", "second"][: 1 + is_done]
    if step == "put":
        assert segments(writer.half) == ["first"], "the mirror lacks it"
    writer.settle()
    assert not staged_entry(writer.half).exists()
    assert segments(writer.half) == on_store(writer, server) == ["first", "second"][: 1 + is_done]
    add(writer.half, "third")
    assert on_store(writer, server) == segments(writer.half)


def test_a_mirror_that_nobody_has_settled_catches_up_when_its_version_is_taken(
    writer: Writer, server: StoreServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was removed here with what a killed operation left comes back from the store."""

    def die(name: str) -> None:
        if name == "store.put":
            raise Killed

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(store_log, "step", die)
        add(writer.half, "second")
    for path in writer.half.glob("*/*.parquet"):
        path.unlink()
    staged_entry(writer.half).unlink()
    with pytest.raises(OvertakenError):
        add(writer.half, "third")
    add(writer.half, "fourth")
    assert segments(writer.half) == on_store(writer, server) == ["fourth", "second"]
    assert open_half(writer.half).table.to_pyarrow_table().num_rows == 2


def test_an_answer_that_is_lost(impatient: Writer, proxy: StoreProxy, server: StoreServer) -> None:
    impatient.mirror.client.tuning = StoreTuning(patience_s=10)
    proxy.next_puts += [lose_answer]
    assert add(impatient.half, "a") == 1
    proxy.next_puts += [lose_request]
    assert add(impatient.half, "b") == 2
    assert on_store(impatient, server) == segments(impatient.half) == ["a", "b"]


def test_an_outcome_that_nobody_knows_keeps_the_files_and_is_settled_later(
    impatient: Writer, proxy: StoreProxy, server: StoreServer
) -> None:
    add(impatient.half, "a")
    proxy.next_puts += [lose_answer] + [lose_request] * 40
    with pytest.raises(MachineError, match="did not say whether the log entry of version 2 was written"):
        add(impatient.half, "b")
    proxy.next_puts.clear()
    assert segments(impatient.half) == ["a"] and staged_entry(impatient.half).exists()
    impatient.settle()
    assert segments(impatient.half) == on_store(impatient, server) == ["a", "b"]
    proxy.next_puts += [lose_request] * 40
    with pytest.raises(MachineError, match="did not say"):
        add(impatient.half, "c")
    proxy.next_puts.clear()
    impatient.settle()
    assert segments(impatient.half) == on_store(impatient, server) == ["a", "b"]
    add(impatient.half, "c")
    assert on_store(impatient, server) == ["a", "b", "c"]


@pytest.mark.parametrize(("status", "code"), [(403, "AccessDenied"), (400, "ExpiredToken"), (501, "NotImplemented")])
def test_a_store_that_refuses(
    impatient: Writer, proxy: StoreProxy, server: StoreServer, status: int, code: str
) -> None:
    add(impatient.half, "a")
    proxy.next_puts += [refuse(status, code)]
    with pytest.raises(StoreError, match=rf"cannot write .*\({code}\)"):
        add(impatient.half, "b")
    assert segments(impatient.half) == on_store(impatient, server) == ["a"]
    assert not staged_entry(impatient.half).exists()
    add(impatient.half, "b")
    assert on_store(impatient, server) == ["a", "b"]


def test_nothing_is_written_without_the_store(impatient: Writer, proxy: StoreProxy, server: StoreServer) -> None:
    add(impatient.half, "a")
    proxy.always = refuse(503, "SlowDown")
    with pytest.raises(StoreError, match="does not answer"):
        add(impatient.half, "b")
    proxy.always = lambda request, send: send(request)
    assert segments(impatient.half) == on_store(impatient, server) == ["a"]


def test_two_writers_of_one_half(writer: Writer, tmp_path: Path, server: StoreServer) -> None:
    """Random pairs of commits by two copies of a home: each is there once, one after the other."""
    other, pairs = another(writer, tmp_path), 40

    def work(home: Writer, numbers: range) -> None:
        random_pauses = random.Random(numbers.start)
        for number in numbers:
            file = write(home.half, every_type(), rows_of(f"s{number}", number))
            while True:
                try:
                    LogTransaction(home.half, COLUMNS).commit(after(home.half), [file])
                    break
                except OvertakenError:
                    if random_pauses.random() < 0.3:
                        open_half(home.half)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, (writer, other), (range(pairs), range(pairs, 2 * pairs))))
    for home in (writer, other):
        staged_entry(home.half).touch()
        home.settle()
        assert home.segments() == sorted(f"s{number}" for number in range(2 * pairs)) == on_store(writer, server)
        assert open_half(home.half).state.act.number == 2 * pairs == open_half(home.half).version
        assert open_half(home.half).table.to_pyarrow_table().num_rows == 2 * pairs


def test_a_foreign_commit_on_the_store_is_followed(writer: Writer, server: StoreServer) -> None:
    add(writer.half, "a")
    table = DeltaTable(writer.table_url, storage_options=server.options)
    rows = table.to_pyarrow_table().set_column(0, table.to_pyarrow_table().schema.field(0), [["theirs"]])
    write_deltalake(table, rows, mode="append")
    add(writer.half, "b")
    assert segments(writer.half) == on_store(writer, server) == ["a", "b", "theirs"]
    assert open_half(writer.half).table.to_pyarrow_table().num_rows == 3


def test_a_foreign_commit_to_the_mirror_goes_to_the_store(writer: Writer, server: StoreServer) -> None:
    """As when delta-rs optimizes the mirror: the store is never left with a gap."""
    add(writer.half, "a")
    foreign(writer.half)
    add(writer.half, "b")
    assert open_half(writer.half).version == 3
    assert DeltaTable(writer.table_url, storage_options=server.options).version() == 3
    assert on_store(writer, server) == ["a", "b"]


def test_a_foreign_commit_that_the_store_has_otherwise_is_set_aside(
    writer: Writer, tmp_path: Path, server: StoreServer
) -> None:
    add(writer.half, "a")
    other = another(writer, tmp_path)
    add(other.half, "theirs")
    foreign(writer.half)
    with pytest.raises(ConflictError, match="another program had written version 2"):
        add(writer.half, "b")
    assert segments(writer.half) == ["a", "theirs"]
    add(writer.half, "b")
    assert segments(writer.half) == on_store(writer, server) == ["a", "b", "theirs"]
    assert len(list((writer.half / "_delta_log").glob(".*.foreign"))) == 1


def test_a_home_that_another_has_taken_over_commits_nothing(
    writer: Writer, tmp_path: Path, server: StoreServer
) -> None:
    add(writer.half, "a")
    other = another(writer, tmp_path, "b")
    with pytest.raises(ConflictError, match="written by another home, host:a"):
        add(other.half, "b")
    claim_by(other)
    fence(other)
    with pytest.raises(ConflictError, match="written by another home, host:b"):
        add(writer.half, "late")
    assert on_store(writer, server) == ["a"]
    add(other.half, "b")
    assert on_store(other, server) == other.segments() == ["a", "b"]


def claim_by(writer: Writer) -> None:
    claim = writer.mirror.ownership.look()
    assert claim is not None and writer.mirror.ownership.take_over(claim) == claim


def fence(writer: Writer) -> None:
    from hybrid.config.settings import load_settings
    from hybrid.home.home import Home
    from hybrid.progress import Silent

    home = Home(load_settings(home=writer.folder.parent, environ={"HYBRID_WAREHOUSE": writer.url}), Silent())
    configure(writer.folder, writer.url, lambda: writer.owner)
    fence_half(home, writer.mirror, writer.half)


def test_what_the_old_home_commits_before_the_fence_is_kept(
    writer: Writer, tmp_path: Path, server: StoreServer
) -> None:
    add(writer.half, "a")
    other = another(writer, tmp_path, "b")
    claim_by(other)
    add(writer.half, "between")  # it has looked at the ownership within the last seconds
    fence(other)
    add(other.half, "b")
    assert other.segments() == on_store(other, server) == ["a", "b", "between"]


def test_a_home_that_comes_back_after_the_log_was_cleaned(writer: Writer, tmp_path: Path) -> None:
    """It must not take a version for free that was cleaned: no reader would look at it."""
    add(writer.half, "a")
    paused, restored = another(writer, tmp_path), another(writer, tmp_path, "r")
    restored = Writer.at(restored.folder, writer.url)  # a snapshot of the machine: the same home, another process
    add(paused.half, "a")
    with pytest.raises(OvertakenError):
        add(writer.half, "a")
    for number in range(3):
        add(writer.half, "a", number)
    for version in range(4):
        writer.mirror.client.delete(writer.mirror.key_of(writer.half, f"_delta_log/{version:020d}.json"))
    for home in (paused, restored):
        with pytest.raises(MachineError, match="has gone on without this home for so long"):
            add(home.half, "late")
        staged_entry(home.half).touch()
        with pytest.raises(MachineError, match="what lies between was cleaned"):
            home.settle()


def test_a_log_that_was_lost_in_part_comes_back(writer: Writer, server: StoreServer) -> None:
    """As when a power failure cut the newest entry short."""
    add(writer.half, "a")
    add(writer.half, "b")
    (writer.half / "_delta_log" / f"{2:020d}.json").unlink()
    with pytest.raises(OvertakenError):
        add(writer.half, "c")
    assert segments(writer.half) == ["a", "b"]


def test_a_mirror_without_its_setting_can_be_read_and_not_written(writer: Writer, server: StoreServer) -> None:
    add(writer.half, "a")
    other = f"{server.kind}://bucket/other"
    for url, words in ((None, "is not set"), (other, f"names {other}")):
        configure(writer.folder, url, lambda: writer.owner)
        with pytest.raises(SpecError, match=f"is the mirror of {writer.url}, but the setting 'warehouse' {words}"):
            add(writer.half, "b")
        assert segments(writer.half) == ["a"]


def test_a_process_that_does_not_know_of_the_store_is_refused(tmp_path: Path, url: str) -> None:
    folder = tmp_path / "warehouse"
    half = folder / "t" / "REALTIME"
    half.mkdir(parents=True)
    mark(folder, url)
    with pytest.raises(SpecError, match="of which this process does not know"):
        put_entry(half, 0, NOTE)


def test_a_prefix_with_other_objects_is_no_warehouse(tmp_path: Path, url: str) -> None:
    Writer.at(tmp_path / "x", url).mirror.client.upload("notes.txt", b"x")
    with pytest.raises(ConflictError, match=r"is not empty: it has notes\.txt"):
        Writer.at(tmp_path / "x", url).create()
    assert read_mark(tmp_path / "x") is None


def test_a_store_that_lost_the_warehouse_is_not_written(writer: Writer) -> None:
    add(writer.half, "a")
    writer.mirror.client.delete(".warehouse.json")
    fresh = Writer.at(writer.folder, writer.url)
    with pytest.raises(ConflictError, match="holds no warehouse any more"):
        add(fresh.half, "b")


def test_an_entry_with_files_elsewhere_is_refused(writer: Writer) -> None:
    for path in ("/etc/x.parquet", "../x.parquet", "s3://other/x.parquet"):
        text = NOTE + json.dumps({"add": {"path": path, "size": 1}}) + "\n"
        with pytest.raises(DataError, match="names a file elsewhere"):
            put_entry(writer.half, 1, text)
    text = NOTE + json.dumps({"add": {"path": "x", "size": 1, "deletionVector": {"a": 1}}}) + "\n"
    with pytest.raises(DataError, match="has a deletion vector"):
        put_entry(writer.half, 1, text)
    assert put_entry(writer.half, 1, NOTE) is Put.MADE


def test_a_table_created_again_has_another_folder(writer: Writer, server: StoreServer) -> None:
    add(writer.half, "old")
    before = writer.table_url
    shutil.rmtree(writer.half)
    writer.create()
    assert writer.table_url != before
    add(writer.half, "new")
    assert on_store(writer, server) == ["new"]
    assert DeltaTable(before, storage_options=server.options).version() == 1
    new_half_key(writer.half)
    assert not (writer.folder / "t" / DEFINITION_FILE).exists()


def test_processes_of_a_home_claim_a_store_together(tmp_path: Path, url: str) -> None:
    """Each knows nothing of the others, as when several tables are created at once."""
    mirrors = [Mirror(tmp_path / "a" / "warehouse", url, lambda: WarehouseOwner("a" * 32, "host:a")) for _ in range(8)]

    def work(mirror: Mirror) -> None:
        mirror.require_writable()
        mirror.client.upload(f"t{id(mirror)}/definition.json", b"{}")

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, mirrors))
    with pytest.raises(ConflictError, match="written by another home"):
        Mirror(tmp_path / "b" / "warehouse", url, lambda: WarehouseOwner("b" * 32, "host:b")).require_writable()
