"""Cleaning a log: what goes, what stays readable, and that it is so wherever it ends. No JVM."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from deltalake import DeltaTable, write_deltalake

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, DataError
from hybrid.lake import cleanup
from hybrid.lake.cleanup import Expired, expired_log, remove_expired
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.layout import TableLayout
from hybrid.lake.lineage_archive import kept_acts
from hybrid.lake.log import lineage_acts, open_half
from hybrid.lake.log_entries import acts_between, commits_to, own_states, read_commit, state_at
from hybrid.lake.plans import corrected_spans, was_reverted
from hybrid.lake.pushes import is_committed
from hybrid.lake.retention_window import retention_window_of
from hybrid.progress import Silent
from hybrid.replace.lineage import EntryState, entries_of, list_replacements
from hybrid.replace.revert import revert
from hybrid.runtime import durable
from tests.lake.aged import DAY, age, entry, older
from tests.query.halves import Halves, Row, orders_spec

NEWEST, OLD, CHECKPOINT = 40, 30, 25


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An OFFLINE half of 40 commits with a row each, those up to 30 forty days old; checkpoints of 25 and 35."""
    folder = tmp_path_factory.mktemp("cleaned")
    halves = Halves.create(folder, orders_spec(halves=[Half.OFFLINE]))
    for number in range(1, NEWEST + 1):
        halves.commit_offline([Row({"order_id": number, "ts": number}, number, None, segment=f"o{number}")])
    path = halves.layout.half(Half.OFFLINE)
    age(path, 40, OLD)
    for version in (CHECKPOINT, 35):
        DeltaTable(str(path), version=version).create_checkpoint()
    return folder


@pytest.fixture
def half(built: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(built, tmp_path / "copy", copy_function=shutil.copy2)
    return TableLayout(tmp_path / "copy" / "orders").half(Half.OFFLINE)


def month_ago() -> int:
    return round(time.time() * 1000) - 30 * DAY


def expired(path: Path) -> Expired:
    return expired_log(open_half(path), month_ago())


def versions(path: Path) -> list[int]:
    return sorted(int(one.stem) for one in (path / "_delta_log").glob("[0-9]*.json") if one.stem.isdigit())


def hinted(path: Path) -> int:
    return int(json.loads((path / "_delta_log" / "_last_checkpoint").read_text(encoding="utf-8"))["version"])


def ids_of(path: Path, version: int | None = None) -> list[str]:
    return sorted(file.segment for file in open_half(path, version).files)


@pytest.mark.slow
def test_the_checkpoint_is_stored_before_the_entries_that_it_stands_for_go(
    half: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    durable.configure(half, True)
    steps: list[str] = []
    sync, delete = durable.sync, cleanup.delete_file
    monkeypatch.setattr(durable, "sync", lambda path: (steps.append(f"store {path.name}"), sync(path)))
    monkeypatch.setattr(cleanup, "delete_file", lambda path: (steps.append(f"delete {path.name}"), delete(path)))
    remove_expired(open_half(half), expired(half))
    first = next(at for at, step in enumerate(steps) if step.startswith("delete") and step.endswith(".json"))
    stored = {step for step in steps[:first] if step.startswith("store")}
    assert {f"store {CHECKPOINT:020d}.checkpoint.parquet", "store _delta_log"} <= stored


@pytest.mark.slow
def test_what_no_version_in_the_window_needs_goes(half: Path) -> None:
    before = {version: ids_of(half, version) for version in range(CHECKPOINT, NEWEST + 1)}
    state = open_half(half).offline
    found = expired(half)
    assert (found.commits, found.cut, found.base, found.is_written) == (CHECKPOINT, CHECKPOINT, CHECKPOINT, True)
    assert found.bytes == sum(path.stat().st_size for path in found.files) > 0
    assert versions(half) == list(range(NEWEST + 1)), "looking changes nothing"
    remove_expired(open_half(half), found)
    assert versions(half) == list(range(CHECKPOINT, NEWEST + 1)) and hinted(half) == 35
    assert {version: ids_of(half, version) for version in before} == before
    assert open_half(half).offline == state
    with pytest.raises(DataError, match="any more"):
        open_half(half, CHECKPOINT - 1)
    assert expired(half).commits == 0 and "readers start from" in expired(half).why


@pytest.mark.slow
def test_whoever_reads_backwards_finds_the_end(half: Path) -> None:
    remove_expired(open_half(half), expired(half))
    assert [version for version, _ in own_states(half, NEWEST)] == list(range(NEWEST, CHECKPOINT - 1, -1))
    assert acts_between(half, CHECKPOINT - 2, NEWEST) is None
    assert len(acts_between(half, CHECKPOINT - 1, NEWEST) or ()) == NEWEST - CHECKPOINT + 1
    assert read_commit(half, CHECKPOINT - 1) is None and state_at(half, 3) is None
    assert [one.version for one in commits_to(half, NEWEST, "o30")] == [30]
    assert not list(commits_to(half, NEWEST, "o3"))


@pytest.mark.slow
def test_commits_that_come_meanwhile_are_no_gap(half: Path) -> None:
    before, found = open_half(half), expired(half)
    _foreign(half)
    assert expired_log(before, month_ago()) == found and found.commits
    remove_expired(before, found)
    assert versions(half) == list(range(CHECKPOINT, NEWEST + 2))


@pytest.mark.slow
def test_the_newest_own_commit_stays_however_many_foreign_ones_follow(half: Path) -> None:
    path = half
    for _ in range(12):
        _foreign(path)
    newest = open_half(path).version
    DeltaTable(str(path)).create_checkpoint()
    age(path, 50)
    state = open_half(path).offline
    found = expired(path)
    assert (found.cut, found.base, found.is_written) == (NEWEST, newest, True)
    remove_expired(open_half(path), found)
    assert open_half(path).offline == state and versions(path) == list(range(NEWEST, newest + 1))
    assert hinted(path) == newest
    with pytest.raises(DataError):  # its entry is there for its state, and no checkpoint before it
        open_half(path, NEWEST + 3)


def _foreign(path: Path) -> None:
    table = DeltaTable(str(path))
    write_deltalake(table, table.to_pyarrow_dataset().schema.empty_table(), mode="append", partition_by=["_hy_segment"])


@pytest.mark.slow
@pytest.mark.parametrize("has_hint", [True, False])
def test_a_checkpoint_is_written_where_none_is_good(half: Path, has_hint: bool) -> None:
    (half / "_delta_log" / f"{CHECKPOINT:020d}.checkpoint.parquet").unlink()
    if not has_hint:
        (half / "_delta_log" / "_last_checkpoint").unlink()
    before = ids_of(half, OLD)
    found = expired(half)
    assert (found.cut, found.base, found.is_written) == (OLD, OLD, False)
    remove_expired(open_half(half), found)
    assert versions(half) == list(range(OLD, NEWEST + 1)) and ids_of(half, OLD) == before
    assert hinted(half) == (35 if has_hint else OLD) and len(ids_of(half)) == NEWEST


@pytest.mark.slow
def test_a_checkpoint_of_which_a_part_is_missing_is_none(half: Path) -> None:
    log = half / "_delta_log"
    whole = log / f"{CHECKPOINT:020d}.checkpoint.parquet"
    whole.rename(log / f"{CHECKPOINT:020d}.checkpoint.0000000001.0000000002.parquet")
    assert expired(half).base == OLD
    shutil.copy(
        log / f"{CHECKPOINT:020d}.checkpoint.0000000001.0000000002.parquet",
        log / f"{CHECKPOINT:020d}.checkpoint.0000000002.0000000002.parquet",
    )
    assert expired(half).base == CHECKPOINT


def test_a_damaged_checkpoint_is_found_before_anything_goes(half: Path) -> None:
    (half / "_delta_log" / f"{CHECKPOINT:020d}.checkpoint.parquet").write_bytes(b"PAR1 torn")
    with pytest.raises(DataError):
        remove_expired(open_half(half), expired(half))
    assert versions(half) == list(range(NEWEST + 1)) and len(ids_of(half)) == NEWEST


@pytest.mark.slow
def test_a_hint_that_names_what_goes_is_taken_away(half: Path) -> None:
    log = half / "_delta_log"
    DeltaTable(str(half), version=10).create_checkpoint()
    hint = json.loads((log / "_last_checkpoint").read_text(encoding="utf-8"))
    (log / "_last_checkpoint").write_text(json.dumps({**hint, "version": 10}), encoding="utf-8")
    remove_expired(open_half(half), expired(half))
    assert not (log / "_last_checkpoint").exists() and not (log / f"{10:020d}.checkpoint.parquet").exists()
    assert len(ids_of(half)) == NEWEST and len(ids_of(half, OLD)) == OLD


def test_checksums_and_compacted_entries_go_with_their_versions(half: Path) -> None:
    log = half / "_delta_log"
    gone = [log / f"{3:020d}.crc", log / f".{3:020d}.json.crc", log / f"{1:020d}.{9:020d}.compacted.json"]
    left = [log / f"{33:020d}.crc", log / f"{20:020d}.{29:020d}.compacted.json", log / "_last_vacuum_info"]
    for path in (*gone, *left):
        path.write_text("{}", encoding="utf-8")
    remove_expired(open_half(half), expired(half))
    assert not any(path.exists() for path in gone) and all(path.exists() for path in left)


@pytest.mark.slow
def test_dying_at_any_file_leaves_a_readable_log(half: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    DeltaTable(str(half), version=10).create_checkpoint()
    DeltaTable(str(half), version=35).create_checkpoint()
    real: Callable[[Path], None] = cleanup.delete_file
    left = 0

    def dying(path: Path) -> None:
        nonlocal left
        if not left:
            raise KeyboardInterrupt
        left -= 1
        real(path)

    monkeypatch.setattr(cleanup, "delete_file", dying)
    shown = {version: ids_of(half, version) for version in (CHECKPOINT, OLD, NEWEST)}
    deaths = 0
    while (found := expired(half)).commits:
        left = 1
        with suppress(KeyboardInterrupt):
            remove_expired(open_half(half), found)
        deaths += not left
        assert {version: ids_of(half, version) for version in shown} == shown, deaths
        assert versions(half) == list(range(versions(half)[0], NEWEST + 1)), "no gap"
    assert versions(half)[0] == CHECKPOINT and deaths >= CHECKPOINT


def test_times_are_the_later_ones_of_what_entries_and_files_say(half: Path) -> None:
    for version in range(OLD + 1):
        os.utime(entry(half, version))  # as a copy has them
    assert not expired(half).commits


def test_a_copy_with_old_times_loses_nothing(half: Path) -> None:
    for version in range(OLD + 1, NEWEST + 1):
        older(entry(half, version), 90)
    assert expired(half).cut == CHECKPOINT


def test_a_clock_that_was_ahead_keeps_what_follows(half: Path) -> None:
    os.utime(entry(half, 12))  # the commit of a machine whose clock was a month ahead
    assert expired(half).cut == 11, "12 counts as new, so all that follow it do"


def test_a_clock_that_jumps_back_cleans_less(half: Path) -> None:
    assert expired_log(open_half(half), month_ago() - 20 * DAY).commits == 0


def test_a_log_that_is_not_understood_is_left_alone(half: Path) -> None:
    entry(half, 7).rename(half / "aside")
    assert not expired(half).commits and "gaps" in expired(half).why
    (half / "aside").rename(entry(half, 7))
    snapshot = open_half(half)
    vars(snapshot)["features"] = frozenset({"v2Checkpoint"})
    assert "v2Checkpoint" in expired_log(snapshot, month_ago()).why


def test_a_window_that_cannot_be_read_is_said(half: Path) -> None:
    snapshot = open_half(half)
    assert (retention_window_of(snapshot).files_ms, retention_window_of(snapshot).log_ms) == (30 * DAY, 30 * DAY)
    for text, millis in (("interval 1 week 2 days", 9 * DAY), ("90 minutes", DAY // 16)):
        vars(snapshot)["properties"] = {**snapshot.properties, "delta.deletedFileRetentionDuration": text}
        assert retention_window_of(snapshot).files_ms == millis and retention_window_of(snapshot).log_ms == 30 * DAY
    for text in ("", "interval", "interval 3", "interval 3 moons", "soon"):
        vars(snapshot)["properties"] = {"delta.deletedFileRetentionDuration": text}
        with pytest.raises(DataError, match="deletedFileRetentionDuration"):
            retention_window_of(snapshot)


@pytest.mark.slow
def test_lineage_outlives_the_log(tmp_path: Path) -> None:
    halves = Halves.create(tmp_path, orders_spec(halves=[Half.OFFLINE]))
    path = halves.layout.half(Half.OFFLINE)
    told = {
        "version_before": 0, "rows_before": 0, "rows_after": 0, "added": 0, "removed": 0, "changed": 0, "result": "R.",
    }  # fmt: skip
    checks = [{"name": "e", "samples": [{"secret": 1}]}]
    first = halves.commit_entry("replace", **told, segments_to=["a"], expectations=checks)
    second = halves.commit_entry("backfill", **told, backfill="plan-1", buckets=[[0, 10]])
    halves.commit_entry("revert", **told, reverts="plan-1")
    for number in range(20):
        halves.commit_offline([Row({"order_id": number}, number, None, segment=f"o{number}")])
    last = halves.commit_entry("replace", **told, segments_from=["a"])
    age(path, 40, 22)
    before = entries_of(open_half(path))
    assert [one.kind for one in before] == ["replace", "revert", "backfill", "replace"]
    half = open_half(path)
    found = expired(path)
    remove_expired(half, found)
    assert versions(path)[0] > 3 and [act.id for _, act in kept_acts(path, half.table_id)][-1] == first
    after = list_replacements(halves.layout)
    assert [(one.id, one.state, one.version) for one in after] == [(one.id, one.state, one.version) for one in before]
    assert [one.state for one in after if one.id == second] == [EntryState.REVERTED]
    assert "secret" not in path.with_name("OFFLINE.acts").read_text(encoding="utf-8")
    newest = open_half(path)
    assert corrected_spans(newest, "plan-1") == {(0, 10)} and was_reverted(newest, "plan-1")
    assert is_committed(newest, first) and not is_committed(newest, "other")
    bench = CommitContext(lambda: pytest.fail("no JVM is needed"), lambda: 0, Silent())
    with pytest.raises(ConflictError, match="no longer retained"):
        revert(halves.context(bench), last)
    with pytest.raises(ConflictError, match="has been reverted already"):
        revert(halves.context(bench), second)
    assert next(act.id for _, act in lineage_acts(newest)) == last
    assert len(list(lineage_acts(newest))) == 4 and not kept_acts(path, "another table")


def test_acts_are_kept_once_however_often_it_dies(half: Path) -> None:
    found = expired(half)
    kept = found.kept
    remove_expired(open_half(half), found)
    cleanup.keep_acts(half, open_half(half).table_id, kept)
    assert len(kept_acts(half)) == len(kept)
