"""Vacuum on real halves: what goes from disk, what stays, and that Spark and DuckDB read the same before and after."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, DataError
from hybrid.lake.cleanup import expired_log, remove_expired
from hybrid.lake.commit import commit_state
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.create import arrow_schema
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import open_half
from hybrid.lake.log_entries import newest_version
from hybrid.lake.table_context import TableContext
from hybrid.move.vacuum import run as vacuum_run
from hybrid.move.vacuum.report import VacuumReport
from hybrid.move.vacuum.run import run_vacuum
from hybrid.progress import Silent
from hybrid.query.engine import QueryOptions, run
from hybrid.query.tail import NoTail
from hybrid.replace.backfill.conflict_monitor import ConflictMonitor
from hybrid.replace.purge.log_statistics import forget_values, logged_files, remembered
from hybrid.table.boundary import Boundary
from hybrid.table.state import next_act, to_user_metadata
from tests.lake.aged import age, entry, older
from tests.query.halves import KEY, Halves, Row, orders_spec

OFFLINE, REALTIME = Half.OFFLINE, Half.REALTIME
ALL = "select order_id from orders limit 1000"
GONE = "o3"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """OFFLINE: 25 segments, one of which was taken out 40 days ago, another today. REALTIME: three fresh commits."""
    folder = tmp_path_factory.mktemp("vacuumed")
    halves = Halves.create(folder, orders_spec())
    for number in range(3):
        row = Row({"order_id": 100 + number, "ts": 100 + number}, 100 + number, number, segment="r0")
        halves.commit_realtime([row], offsets={KEY: number + 1})
    for number in range(25):
        halves.commit_offline([Row({"order_id": number, "ts": number}, number, None, segment=f"o{number}")])
    halves.commit_offline([], Boundary(50, {}))
    _drop(halves, GONE)
    age(halves.layout.half(OFFLINE), 40)
    _drop(halves, "o4")
    DeltaTable(str(halves.layout.half(OFFLINE))).create_checkpoint()
    older(halves.layout.half(OFFLINE) / "_hy_segment=o4", 40)
    return folder


def _drop(halves: Halves, segment: str) -> None:
    """Takes a segment out, as retention does."""
    path = halves.layout.half(OFFLINE)
    state = open_half(path).offline
    state = replace(state, act=next_act(state, f"drop-{segment}", "retention", state.act.at, {}))
    properties = CommitProperties(custom_metadata={"userMetadata": to_user_metadata(state)})
    nothing = arrow_schema(halves.spec, OFFLINE).empty_table()
    options: dict[str, Any] = {"mode": "overwrite", "predicate": f"_hy_segment = '{segment}'"}
    write_deltalake(str(path), nothing, **options, commit_properties=properties)


@pytest.fixture
def table(built: Path, tmp_path: Path) -> Iterator[Halves]:
    """A copy of it."""
    shutil.copytree(built, tmp_path / "copy", copy_function=shutil.copy2)
    yield Halves(orders_spec(), TableLayout(tmp_path / "copy" / "orders"))


def no_spark() -> Any:
    raise AssertionError("no JVM is needed")


def bench_of(shared: CommitContext | None, now: Callable[[], int] | None = None) -> CommitContext:
    clock = now or (lambda: round(time.time() * 1000))
    return CommitContext(no_spark if shared is None else lambda: shared.spark, clock, Silent(), lock_timeout_s=0.2)


def vacuumed(table: Halves, shared: CommitContext | None, **options: Any) -> VacuumReport:
    return run_vacuum(TableContext(bench_of(shared), table.spec, table.layout), **options)


def ids(table: Halves) -> list[int]:
    return sorted(found[0] for found in run(ALL, table, QueryOptions(tail=NoTail())).rows)


def files_of(table: Halves, segment: str, half: Half = OFFLINE) -> list[Path]:
    return sorted((table.layout.half(half) / f"_hy_segment={segment}").glob("*.parquet"))


def everything(table: Halves) -> dict[Path, int]:
    """Every file and when it was written; locks and records of staging apart."""
    halves = (table.layout.half(half) for half in Half)
    return {path: path.stat().st_mtime_ns for half in halves for path in half.rglob("*") if path.is_file()}


def spark_ids(shared: CommitContext, path: Path, version: int | None = None) -> list[int]:
    reader = shared.spark.read.format("delta")
    reader = reader.option("versionAsOf", version) if version is not None else reader
    return sorted(row[0] for row in reader.load(str(path)).select("order_id").collect())


@pytest.mark.spark
def test_files_and_commits_go_that_no_version_in_the_window_needs(
    workbench: CommitContext, table: Halves, capfd: pytest.CaptureFixture[str]
) -> None:
    path = table.layout.half(OFFLINE)
    newest, shown = open_half(path).version, ids(table)
    orphan = files_of(table, "o5")[0].with_name("part-killed.parquet")
    shutil.copy(files_of(table, "o5")[0], orphan)
    os.utime(orphan, (1, 1))
    fresh = orphan.with_name("part-in-flight.parquet")
    shutil.copyfile(orphan, fresh)
    sizes = sum(one.stat().st_size for one in (*files_of(table, GONE), orphan))

    before = everything(table)
    now = round(time.time() * 1000)
    dry = run_vacuum(TableContext(bench_of(None, lambda: now), table.spec, table.layout), dry_run=True)
    assert dry.files == {"OFFLINE": 2, "REALTIME": 0} and dry.bytes["OFFLINE"] == sizes and not dry.removed
    assert dry.commits["OFFLINE"] == newest - 1 and dry.commits["REALTIME"] == 0
    assert dry.sentence.startswith("Would remove 2 data files (") and everything(table) == before

    report = run_vacuum(TableContext(bench_of(workbench, lambda: now), table.spec, table.layout))
    assert report.sentence == dry.sentence.replace("Would remove", "Removed")
    assert vars(report) == {**vars(dry), "sentence": report.sentence, "dry_run": False}
    assert not files_of(table, GONE) and not orphan.exists()
    assert capfd.readouterr().out == "", "VACUUM prints, and results go to stdout"
    assert fresh.exists(), "it may be about to be committed"
    assert len(files_of(table, "o4")) == 1, "the version before this one has it"
    assert open_half(path).version == newest, "VACUUM's own commits are not in the log"
    assert not entry(path, newest - 2).exists() and entry(path, newest - 1).exists()

    assert ids(table) == shown == sorted([*spark_ids(workbench, path), 100, 101, 102])
    before_it = open_half(path, newest - 1).files
    assert len(before_it) == 24 and all(Path(file.path).exists() for file in before_it)
    with pytest.raises(Exception, match=r"VERSION_NOT_FOUND|Cannot time travel|RETENTION"):
        spark_ids(workbench, path, newest - 2)
    current = open_half(path)
    act = next_act(current.state, "next", "boundary", current.state.act.at, {})
    commit_state(path, replace(current.offline, act=act), planned=current.version)
    assert open_half(path).offline.act.id == "next" and spark_ids(workbench, path) == shown[:-3]

    again = vacuumed(table, None)
    assert not again.removed and again.sentence.startswith("Nothing to remove from 'orders': of OFFLINE no data file ")


@pytest.mark.spark
def test_a_session_that_has_read_what_goes_reads_on(workbench: CommitContext, table: Halves) -> None:
    path = table.layout.half(OFFLINE)
    newest = open_half(path).version
    for one in (path / "_delta_log").glob("*checkpoint*"):
        one.unlink()
    DeltaTable(str(path), version=10).create_checkpoint()
    shown = spark_ids(workbench, path)  # by the checkpoint of 10
    DeltaTable(str(path), version=newest - 1).create_checkpoint()
    clean_only(table)
    assert not list((path / "_delta_log").glob(f"{10:020d}.*"))
    assert spark_ids(workbench, path) == shown
    workbench.spark.sql(f"DESCRIBE HISTORY delta.`{path}`").collect()


@pytest.mark.slow
def test_a_purge_between_look_and_clean_up_is_noticed(table: Halves) -> None:
    half = open_half(table.layout.half(OFFLINE))
    found = expired_log(half, round(time.time() * 1000) - 30 * 86_400_000)
    assert found.commits and not found.is_written
    remove_expired(half, replace(found, files=()))
    later = expired_log(half, round(time.time() * 1000) - 30 * 86_400_000)
    assert later.is_written
    (half.path / "_delta_log" / f"{later.base:020d}.checkpoint.parquet").unlink()
    with pytest.raises(DataError, match="changed meanwhile"):
        remove_expired(half, later)
    assert entry(half.path, 0).exists()


@pytest.mark.slow
def test_an_idle_table_needs_no_jvm_and_changes_nothing(table: Halves) -> None:
    only = replace(table.spec, halves=frozenset([REALTIME]))
    before = everything(table)
    report = run_vacuum(TableContext(bench_of(None), only, table.layout))
    assert (report.removed, report.files, report.commits) == (False, {"REALTIME": 0}, {"REALTIME": 0})
    assert "no commit is old enough" in report.sentence and everything(table) == before


def test_a_clock_that_jumps_back_removes_no_commit(table: Halves) -> None:
    bench = bench_of(None, lambda: round(time.time() * 1000) - 20 * 86_400_000)
    assert not any(run_vacuum(TableContext(bench, table.spec, table.layout), dry_run=True).commits.values())


def test_a_window_below_an_hour_is_left_alone(table: Halves) -> None:
    path = table.layout.half(OFFLINE)
    DeltaTable(str(path)).alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 10 minutes"})
    report = vacuumed(table, None)
    assert report.files["OFFLINE"] == report.commits["OFFLINE"] == 0 and len(files_of(table, GONE)) == 1
    assert "shorter than an hour" in report.kept["OFFLINE"]


@pytest.mark.spark
def test_it_waits_for_whoever_lays_files_in_the_half(workbench: CommitContext, table: Halves) -> None:
    other = bench_of(workbench)
    held = everything(table)
    with other.lock(table.layout, OFFLINE), pytest.raises(ConflictError, match="Nothing was changed"):
        _in_another_thread(lambda: vacuumed(table, workbench))
    assert everything(table) == held


def _in_another_thread(call: Callable[[], object]) -> None:
    """A lock file that this process has open elsewhere: threads of one process take turns before they try it."""
    from hybrid.lake import commit_context as module

    turns, module._TURNS = module._TURNS, {}
    try:
        call()
    finally:
        module._TURNS = turns


@pytest.mark.slow
def test_dying_between_files_and_log_leaves_the_rest_to_the_next_run(
    table: Halves, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = ids(table)

    def killed(_: object, half: Path) -> None:
        for path in half.glob(f"_hy_segment={GONE}/*.parquet"):
            path.unlink()
        raise KeyboardInterrupt

    monkeypatch.setattr(vacuum_run, "vacuum", killed)
    monkeypatch.setattr(CommitContext, "lock", _free)
    with pytest.raises(KeyboardInterrupt):
        run_vacuum(TableContext(bench_of(_Any()), table.spec, table.layout))
    assert ids(table) == shown
    report = vacuumed(table, None)
    assert report.files["OFFLINE"] == 0 and report.commits["OFFLINE"] > 20 and ids(table) == shown


class _Any:
    spark = None


class _free:
    """A lock that nobody else wants."""

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.slow
def test_a_purge_finds_nothing_left_in_a_log_that_was_cleaned(table: Halves) -> None:
    """What checkpoints tell of files that are gone goes, though older versions are read from them."""
    path = table.layout.half(OFFLINE)
    DeltaTable(str(path), version=open_half(path).version - 1).create_checkpoint()
    for _ in range(2):
        _drop_again(table)
    clean_only(table)
    current = open_half(path)
    assert not entry(path, 0).exists()
    for name in ("o4",):
        files_of(table, name)[0].unlink()
    assert remembered(current)
    forget_values(current, set(), logged_files(path))
    assert not remembered(open_half(path))
    assert [len(open_half(path, version).files) for version in (current.version - 3, current.version)] == [24, 23]


def _drop_again(table: Halves) -> None:
    path = table.layout.half(OFFLINE)
    current, before = open_half(path), open_half(path).offline.act
    act = next_act(current.state, f"state-{before.number}", "boundary", before.at, {})
    commit_state(path, replace(current.offline, act=act), planned=current.version)


def clean_only(table: Halves) -> None:
    half = open_half(table.layout.half(OFFLINE))
    remove_expired(half, expired_log(half, round(time.time() * 1000) - 30 * 86_400_000))


@pytest.mark.slow
def test_a_plan_on_a_version_that_has_gone_is_stale(table: Halves) -> None:
    class Pinned:
        id, table, offline_version, table_id = "backfill-1", "orders", 3, ""

    clean_only(table)
    with pytest.raises(ConflictError, match="no longer retained"):
        ConflictMonitor(table.layout.half(OFFLINE), Pinned())  # type: ignore[arg-type]
    assert newest_version(table.layout.half(OFFLINE), 27) == 28
