"""Transactions on a half beside foreign commits, and what other readers find after them."""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote, unquote

import pytest
from deltalake import DeltaTable
from deltalake.transaction import AddAction

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, DataError, OvertakenError
from hybrid.lake import transaction as module
from hybrid.lake.commit import (
    FileAct,
    Written,
    commit_act,
    commit_files,
    commit_state,
)
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.create import create_half
from hybrid.lake.layout import physical_columns, physical_ddl
from hybrid.lake.log import open_half
from hybrid.lake.transaction import LogTransaction
from hybrid.lake.worker_files import WorkerFiles
from hybrid.table.columns import SEGMENT
from hybrid.table.state import Act, RealtimeState, next_act
from tests.every_type import every_type
from tests.lake.test_files import row, write

COLUMNS = physical_columns(every_type(), Half.REALTIME)
LATE = {"name": "late", "type": "string", "nullable": True, "metadata": {}}
ODD_NAMES = [
    "a b",
    "x:y",
    "50%",
    "é",
    "q'uote",
    "a=b",
    "a/b",
    "#1",
    "[x]",
    "tab\tbed",
    "%41",
    "(2)",
    "+00:00",
    "a;b&c,d@e!",
]


@pytest.fixture
def half(tmp_path: Path) -> Path:
    create_half(tmp_path / "REALTIME", every_type(), Half.REALTIME, RealtimeState(Act("create-0", 0, "create", "x")))
    return tmp_path / "REALTIME"


def after(half: Path) -> RealtimeState:
    state = open_half(half).realtime
    return replace(state, act=next_act(state, f"ingest-{state.act.number + 1}", "ingest", "x", {}))


def rows_of(segment: str, number: int = 0) -> list[tuple[object, ...]]:
    return [(segment, *row(number)[1:])]


def add(half: Path, segment: str, number: int = 0) -> int:
    entry = write(half, every_type(), rows_of(segment, number))
    return LogTransaction(half, COLUMNS).commit(after(half), [entry])


def foreign(half: Path, *actions: AddAction) -> None:
    """A commit of another tool, without our lock and state."""
    table = DeltaTable(str(half))
    table.create_write_transaction(list(actions), "append", table.schema(), [SEGMENT])


def foreign_file(half: Path, segment: str) -> AddAction:
    add = write(half, every_type(), rows_of(segment, 9), "theirs")["add"]
    assert isinstance(add, dict)
    return AddAction(add["path"], add["size"], add["partitionValues"], 0, True, add["stats"])


def segments(half: Path) -> list[str]:
    return sorted(file.segment for file in open_half(half).files)


def log_entry(half: Path, version: int) -> dict[str, dict[str, object]]:
    lines = (half / "_delta_log" / f"{version:020d}.json").read_text().splitlines()
    return {kind: body for line in lines for kind, body in json.loads(line).items()}


@pytest.mark.slow
def test_it_follows_a_foreign_commit_of_rows(half: Path) -> None:
    add(half, "a")
    transaction = LogTransaction(half, COLUMNS)
    foreign(half, foreign_file(half, "theirs"))
    assert transaction.commit(after(half), [write(half, every_type(), rows_of("b", 1))]) == 3
    assert segments(half) == ["a", "b", "theirs"]
    assert log_entry(half, 3)["commitInfo"]["readVersion"] == 2


def test_columns_that_somebody_changes_before_the_entry_is_written(half: Path) -> None:
    transaction = LogTransaction(half, COLUMNS)
    DeltaTable(str(half)).alter.set_table_properties({"delta.appendOnly": "false"})
    with pytest.raises(OvertakenError):
        transaction.commit(after(half), [])
    assert open_half(half).state.act.number == 0


def test_a_constraint_of_somebody_else_is_named(half: Path) -> None:
    DeltaTable(str(half)).alter.add_constraint({"positive": "i > 0"})
    with pytest.raises(ConflictError, match=r"it has delta\.constraints\.positive"):
        LogTransaction(half, COLUMNS)


def test_an_own_commit_before_it_is_noticed(half: Path) -> None:
    transaction, state = LogTransaction(half), after(half)
    add(half, "a")
    with pytest.raises(OvertakenError):
        transaction.commit(state, [])
    with pytest.raises(OvertakenError):
        LogTransaction(half).commit(state, [])
    with pytest.raises(OvertakenError):
        commit_state(half, state, planned=0)
    assert open_half(half).version == 1


@pytest.mark.slow
def test_whoever_always_comes_first_wins(half: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transaction, follow = LogTransaction(half), LogTransaction._follow
    state = after(half)

    def overtake(self: LogTransaction, replacing: Sequence[str]) -> None:
        follow(self, replacing)
        foreign(half)

    foreign(half)
    monkeypatch.setattr(LogTransaction, "_follow", overtake)
    with pytest.raises(OvertakenError):
        transaction.commit(state, [])
    assert open_half(half).state.act.number == 0


@pytest.mark.parametrize("columns", [False, True])
def test_an_error_of_the_disk_is_told_and_nothing_is_committed(half: Path, columns: bool) -> None:
    transaction, state = LogTransaction(half), after(half)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))  # as a full disk, for files of over 100 bytes
    try:
        with pytest.raises(DataError, match="version 1 was not written"):
            _ = transaction.commit_columns(state, [LATE], []) if columns else transaction.commit(state, [])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert open_half(half).version == 0 and not list((half / "_delta_log").glob("*.part"))
    assert LogTransaction(half).commit(state, []) == 1


@pytest.mark.slow
def test_checkpoints_come_every_ten_commits_and_keep_the_fence(half: Path) -> None:
    for _ in range(21):
        LogTransaction(half).commit(after(half), [])
    log = half / "_delta_log"
    assert sorted(path.name[:20] for path in log.glob("*.checkpoint.parquet")) == [f"{n:020d}" for n in (10, 20)]
    for version in range(21):
        (log / f"{version:020d}.json").unlink()
    (log / f"{21:020d}.json").write_text(json.dumps({"commitInfo": {"timestamp": 1, "operation": "theirs"}}))
    outdated = RealtimeState(Act("late", 20, "ingest", "x"))
    with pytest.raises(OvertakenError):
        LogTransaction(half).commit(outdated, [])
    assert LogTransaction(half).commit(replace(outdated, act=replace(outdated.act, number=21)), []) == 22


@pytest.mark.slow
def test_a_checkpoint_that_fails_leaves_the_commit_and_is_made_up_for(
    half: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(module, "write_checkpoint", fail)
        for _ in range(10):
            LogTransaction(half).commit(after(half), [])
    assert open_half(half).version == 10 and module.last_checkpoint(half) == 0
    LogTransaction(half).commit(after(half), [])
    assert module.last_checkpoint(half) == 11


@pytest.mark.slow
def test_the_newest_checkpoint_is_the_hinted_one_where_that_is_there(
    half: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(10):
        LogTransaction(half).commit(after(half), [])
    log = half / "_delta_log"
    hint, checkpoint = log / "_last_checkpoint", log / f"{10:020d}.checkpoint.parquet"
    with monkeypatch.context() as patched:
        patched.setattr(Path, "glob", lambda *_: pytest.fail("the folder is listed"))
        assert module.last_checkpoint(half) == 10
    written = hint.read_text(encoding="utf-8")
    for text in ("", "[]", '{"version": 7}'):
        hint.write_text(text, encoding="utf-8")
        assert module.last_checkpoint(half) == 10, "no hint, or one to a checkpoint that is gone"
    hint.unlink()
    assert module.last_checkpoint(half) == 10
    hint.write_text(written, encoding="utf-8")
    checkpoint.rename(log / f"{10:020d}.checkpoint.{1:010d}.{1:010d}.parquet")
    assert module.last_checkpoint(half) == 10, "one of several files"
    (log / f"{10:020d}.checkpoint.{1:010d}.{1:010d}.parquet").unlink()
    assert module.last_checkpoint(half) == 0, "a purge has deleted it"


@pytest.mark.slow
def test_segments_are_replaced_in_one_entry(half: Path) -> None:
    add(half, "a", 1)
    add(half, "b__2021-09-24_00.x", 2)
    add(half, "c", 3)
    transaction = LogTransaction(half, COLUMNS)
    gone = transaction.files_of(["b__2021-09-24_00.x", "c", "never"])
    assert {path.split("/")[0] for path in gone} == {
        f"{SEGMENT}=b__2021-09-24_00.x",
        f"{SEGMENT}=c",
    }
    entry = write(half, every_type(), rows_of("c", 4))
    assert transaction.commit(after(half), [entry], ["b__2021-09-24_00.x", "c", "never"]) == 4
    assert segments(half) == ["a", "c"]
    text = (half / "_delta_log" / f"{4:020d}.json").read_text().splitlines()
    actions = [json.loads(line) for line in text]
    assert {action["remove"]["path"] for action in actions if "remove" in action} == gone
    assert next(action["commitInfo"] for action in actions if "commitInfo" in action)["isBlindAppend"] is False


@pytest.mark.parametrize("is_cleaned", [False, True])
@pytest.mark.parametrize(
    "written",
    [f"{SEGMENT}%3Da/p%2D1.parquet", f"x y/{SEGMENT}=a/p.parquet", f"file:///elsewhere/%2541/{SEGMENT}=a/p.parquet"],
)
def test_files_are_removed_by_the_texts_that_others_gave_their_paths(
    half: Path, written: str, is_cleaned: bool
) -> None:
    """In entries, and in a checkpoint whose entries are gone. Clones of tables name the files of the original."""
    add(half, "b")
    add(half, "a")
    log = half / "_delta_log"
    entry = log / f"{2:020d}.json"
    lines = [json.loads(line) for line in entry.read_text().splitlines()]
    for line in lines:
        if "add" in line:
            line["add"]["path"] = written
    entry.write_text("\n".join(json.dumps(line) for line in lines))
    if is_cleaned:
        LogTransaction(half).commit(after(half), [])
        DeltaTable(str(half)).create_checkpoint()
        for version in range(3):
            (log / f"{version:020d}.json").unlink()
    transaction = LogTransaction(half)
    assert transaction.files_of(["a"]) == {unquote(written)}
    version = transaction.commit(after(half), [], ["a"])
    assert log_entry(half, version)["remove"]["path"] == written and segments(half) == ["b"]


def test_a_half_that_takes_new_rows_only(half: Path) -> None:
    add(half, "a")
    DeltaTable(str(half)).alter.set_table_properties({"delta.appendOnly": "true"})
    transaction = LogTransaction(half)
    transaction.require_replaceable([])
    with pytest.raises(ConflictError, match=r"has delta\.appendOnly"):
        transaction.require_replaceable(["a"])


@pytest.mark.slow
def test_foreign_rows_since_the_plan_are_not_replaced_unseen(half: Path) -> None:
    add(half, "a")
    planned = open_half(half).version
    foreign(half, foreign_file(half, "b"))
    LogTransaction(half, planned=planned).require_replaceable(["a"], planned)
    foreign(half, foreign_file(half, "a"))
    with pytest.raises(OvertakenError):
        LogTransaction(half, planned=planned).require_replaceable(["a"], planned)


def test_a_commit_that_replaces_nothing_removes_nothing(half: Path) -> None:
    add(half, "a")
    LogTransaction(half).commit(after(half), [], [])
    assert segments(half) == ["a"]


def test_rows_are_removed_without_new_ones(half: Path) -> None:
    add(half, "a")
    add(half, "b")
    LogTransaction(half).commit(after(half), [], ["a"])
    assert segments(half) == ["b"]


def test_a_replacement_goes_on_behind_foreign_rows_of_other_segments(half: Path) -> None:
    add(half, "a")
    transaction = LogTransaction(half, COLUMNS)
    foreign(half, foreign_file(half, "b"))
    assert transaction.commit(after(half), [write(half, every_type(), rows_of("a", 2))], ["a"]) == 3
    assert segments(half) == ["a", "b"]


def test_a_replacement_gives_way_to_foreign_rows_of_its_segments(half: Path) -> None:
    add(half, "a")
    transaction, state = LogTransaction(half, COLUMNS), after(half)
    foreign(half, foreign_file(half, "a"))
    with pytest.raises(OvertakenError):
        transaction.commit(state, [write(half, every_type(), rows_of("a", 2))], ["a"])
    assert segments(half) == ["a", "a"]


def test_a_replacement_gives_way_to_a_foreign_removal_from_its_segments(half: Path) -> None:
    add(half, "a")
    add(half, "b")
    transaction, state = LogTransaction(half, COLUMNS), after(half)
    DeltaTable(str(half)).delete(f"{SEGMENT} = 'a'")
    with pytest.raises(OvertakenError):
        transaction.commit(state, [], ["a"])
    assert segments(half) == ["b"]


@pytest.mark.slow
def test_a_replacement_removes_what_a_foreign_rewrite_made_of_its_segments(half: Path) -> None:
    add(half, "a", 1)
    add(half, "a", 2)
    add(half, "b", 3)
    transaction, state = LogTransaction(half, COLUMNS), after(half)
    DeltaTable(str(half)).optimize.compact([(SEGMENT, "=", "a")])
    assert segments(half) == ["a", "b"]
    transaction.commit(state, [], ["a"])
    assert segments(half) == ["b"]


@pytest.mark.parametrize("segment", ODD_NAMES)
def test_segments_of_odd_names_are_replaced(half: Path, segment: str) -> None:
    """A remove must write the path exactly as the add before it."""
    add(half, segment)
    LogTransaction(half).commit(after(half), [write(half, every_type(), rows_of(segment, 2))], [segment])
    assert segments(half) == [segment]
    assert log_entry(half, 1)["add"]["path"] == log_entry(half, 2)["remove"]["path"]


@pytest.mark.parametrize("spelled", [quote, lambda path: path.replace("%", "%25")])
@pytest.mark.parametrize("segment", ODD_NAMES)
def test_what_delta_rs_rewrites_and_deletes_is_gone(half: Path, segment: str, spelled: Callable[[str], str]) -> None:
    """It spells removals in its own way, whatever the path of the addition, which Spark and workers spell in theirs."""
    for number in range(4):
        entry = write(half, every_type(), rows_of(segment, number))
        entry["add"]["path"] = spelled(unquote(entry["add"]["path"]))  # type: ignore[index]
        LogTransaction(half, COLUMNS).commit(after(half), [entry])
    table = DeltaTable(str(half))
    table.optimize.compact()
    assert sorted(table.to_pyarrow_table()["i"].to_pylist()) == [row(number)[11] for number in range(4)]
    table.delete(f"i = {row(0)[11]}")
    assert sorted(table.to_pyarrow_table()["i"].to_pylist()) == [row(number)[11] for number in range(1, 4)]


@pytest.mark.parametrize("segment", ODD_NAMES)
def test_a_foreign_removal_from_a_segment_of_any_name_is_noticed(half: Path, segment: str) -> None:
    add(half, segment)
    planned = open_half(half).version
    DeltaTable(str(half)).delete()
    with pytest.raises(OvertakenError):
        LogTransaction(half, planned=planned).require_replaceable([segment], planned)


@pytest.mark.spark
def test_spark_reads_segments_of_any_name(half: Path, workbench: CommitContext) -> None:
    names = sorted(["plain-1_x.y", *ODD_NAMES])
    for name in names:
        add(half, name)
    assert segments(half) == names and all(Path(file.path).exists() for file in open_half(half).files)
    read = workbench.spark.read.format("delta").load(str(half))
    assert sorted(one[0] for one in read.select(SEGMENT).collect()) == names
    added = {unquote(path): path for path in (log_entry(half, 1 + n)["add"]["path"] for n in range(len(names)))}
    for name in names:
        files = open_half(half).files_of(name)
        act = FileAct(half, "ingest", f"without {name}", COLUMNS, replacing={name: files})
        version = commit_files(workbench.spark, act, lambda: Written([], after(half)))
        removed = log_entry(half, version)["remove"]["path"]
        assert removed == added[unquote(removed)] and unquote(removed) in files, name
    assert segments(half) == [] and workbench.spark.read.format("delta").load(str(half)).count() == 0


@pytest.mark.spark
def test_both_ways_of_committing_follow_each_other(half: Path, workbench: CommitContext) -> None:
    """Also beyond Delta's checkpoint, which is at version 10."""
    spark = workbench.spark
    for number in range(6):
        add(half, "a", 2 * number)
        frame = spark.createDataFrame(rows_of("b", 2 * number + 1), physical_ddl(every_type(), Half.REALTIME))
        commit_act(frame, WorkerFiles(half, True), after(half), planned=open_half(half).version)
    assert spark.read.format("delta").load(str(half)).count() == len(open_half(half).files) == 12
    frame = spark.createDataFrame(rows_of("b", 99), physical_ddl(every_type(), Half.REALTIME))
    commit_act(frame, WorkerFiles(half, True), after(half), planned=open_half(half).version, replacing=["a", "b"])
    assert segments(half) == ["b"] and spark.read.format("delta").load(str(half)).count() == 1


@pytest.mark.spark
def test_columns_of_others_stay_in_what_is_rewritten(half: Path, workbench: CommitContext) -> None:
    spark = workbench.spark
    add(half, "a")
    kinds = "tiny TINYINT, small SMALLINT, both STRUCT<Q: BIGINT, l: ARRAY<SMALLINT>>, pairs MAP<STRING, INT>"
    spark.sql(f"ALTER TABLE delta.`{half}` ADD COLUMNS ({kinds})")
    rows = spark.read.format("delta").load(str(half))
    commit_act(
        rows.where("false"), WorkerFiles(half, True), after(half), planned=open_half(half).version, replacing=["a"]
    )
    assert segments(half) == []


@pytest.mark.spark
def test_rows_outside_of_what_is_replaced_are_refused(half: Path, workbench: CommitContext) -> None:
    add(half, "a")
    frame = workbench.spark.createDataFrame(rows_of("b"), physical_ddl(every_type(), Half.REALTIME))
    with pytest.raises(DataError, match="segment 'b', which is not replaced"):
        commit_act(frame, WorkerFiles(half, True), after(half), planned=open_half(half).version, replacing=["a"])
    assert segments(half) == ["a"]


@pytest.mark.spark
def test_features_that_ask_more_of_a_writer_are_left_to_spark(half: Path, workbench: CommitContext) -> None:
    workbench.spark.sql(f"ALTER TABLE delta.`{half}` SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')")
    assert not LogTransaction(half, COLUMNS).is_plain
    with pytest.raises(ConflictError, match="only Spark can commit to"):
        commit_state(half, after(half), planned=open_half(half).version)
    started: list[str] = []

    def start() -> object:
        started.append("spark")
        return workbench.spark

    version = commit_state(half, after(half), planned=open_half(half).version, start_spark=start)  # type: ignore[arg-type]
    assert started and open_half(half).version == version
    act = FileAct(half, "ingest", "ingest-x", COLUMNS)
    commit_files(
        workbench.spark, act, lambda: Written([write(half, every_type(), rows_of("a"), "ingest-x")], after(half))
    )
    assert "baseRowId" in log_entry(half, version + 1)["add"]
