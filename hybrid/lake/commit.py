"""The single commit path of a half: one Delta commit per operation with its rows and state (R2), fenced.

The fence is one txnAppId per half, with txnVersion = the operation's number. A writer that planned on an outdated state
fails, before the commit or in it. Every commit is a Delta transaction in three steps: write the files, sync them to
disk, write and sync the log entry (ADR 24).

`hybrid.lake.transaction` commits states, columns and files, whoever wrote the files, without a JVM. Commits to halves
whose Delta features ask for Spark's own writer are transactions of Delta's in the JVM (ADR 43, 58, 60, 62).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote

from hybrid.errors import DataError, OvertakenError
from hybrid.lake.delta_errors import is_conflict, is_schema_mismatch
from hybrid.lake.failpoints import failpoint
from hybrid.lake.layout import fence_of
from hybrid.lake.log_entries import fence_at, state_at
from hybrid.lake.log_sync import sync_log
from hybrid.lake.transaction import (
    LogTransaction,
    changed_by_others,
    conflict_with,
    grown_columns,
    other_columns,
    refuse_columns,
)
from hybrid.lake.worker_files import WorkerFiles
from hybrid.lake.worker_output import write_rows
from hybrid.runtime import durable
from hybrid.store.mirror import mirror_at
from hybrid.table.columns import SEGMENT
from hybrid.table.state import HalfState, to_user_metadata

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def commit_act(
    frame: DataFrame,
    files: WorkerFiles,
    state: HalfState,
    *,
    planned: int,
    replacing: Sequence[str] = (),
) -> int:
    """Append `frame`, or replace the segments `replacing` by it, and make `state` the half's state.

    In each task of the frame the rows of a segment follow each other: each run of them becomes a file, in its order.
    Sorting here would undo the order within segments.

    Call it under the half's lock. `files` is the half as workers write to it, and `planned` the Delta version that the
    operation was planned on. Returns the version of the commit. Raises OvertakenError when another operation committed
    first, and ConflictError when the half's columns have changed. Nothing was changed then.
    """
    kind, half = state.act.kind, files.half
    failpoint(kind, "before")
    log = LogTransaction(half, planned=planned)
    if log.is_plain:
        version = _commit_in_log(frame, files, state, log, planned, replacing)
    else:
        version = _commit_by_spark(frame, half, state, planned, replacing)
    failpoint(kind, "after")
    return version


def _commit_in_log(
    frame: DataFrame, files: WorkerFiles, state: HalfState, log: LogTransaction, planned: int, replacing: Sequence[str]
) -> int:
    """`commit_act` with an entry of ours."""
    log.require_columns(frame.dtypes)
    log.require_replaceable(replacing, planned)
    adds = write_rows(frame, files, state.act.kind)
    _refuse_outside(files.half, adds, replacing)
    failpoint(state.act.kind, "inside")
    try:
        return log.commit(state, adds, replacing)
    except OvertakenError:  # after any other error the files stay: the commit may have succeeded
        for path in _paths(files.half, adds):
            path.unlink(missing_ok=True)
        raise


def _commit_by_spark(frame: DataFrame, half: Path, state: HalfState, planned: int, replacing: Sequence[str]) -> int:
    """`commit_act` as a transaction of Delta's own."""
    _refuse_mirror(half)
    transaction = _start(frame.sparkSession, half)
    if any(state_at(half, version) is not None for version in range(planned + 1, transaction.readVersion() + 1)):
        raise conflict_with(half)  # fail before files are written in vain
    replaced = _in_segments(replacing) if replacing else None
    actions = _write(frame, half, transaction, replaced)
    failpoint(state.act.kind, "inside")
    return _commit(frame.sparkSession, half, state, transaction, actions, replaced)


def commit_state(
    half: Path, state: HalfState, *, planned: int, start_spark: Callable[[], SparkSession] | None = None
) -> int:
    """Make `state` the half's state, without rows. Otherwise as `commit_act`, but no JVM is needed.

    Only a half whose Delta features ask for Spark's own writer needs one: `start_spark` returns the session then, whose
    JVM the lock has to name (`LockedHalf`).
    """
    transaction = LogTransaction(half, planned=planned)
    if not transaction.is_plain:
        if start_spark is None:
            raise changed_by_others(half, "it has Delta features that only Spark can commit to")
        nothing = start_spark().read.format("delta").load(str(half)).limit(0)
        return commit_act(nothing, WorkerFiles(half, durable.is_enabled(half)), state, planned=planned)
    kind = state.act.kind
    failpoint(kind, "before")
    failpoint(kind, "inside")
    version = transaction.commit(state, [])
    failpoint(kind, "after")
    return version


def _start(spark: SparkSession, half: Path) -> Any:
    """A Delta transaction on the newest version of a half, for this thread.

    Delta looks for its settings in the thread's active session. Operations of a DataFrame set it for as long as they
    take, so a thread that only changes columns would have none.
    """
    jvm: Any = spark._jvm
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(spark._jsparkSession)
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(half)).startTransaction()


def _refuse_outside(half: Path, entries: Iterable[Mapping[str, Any]], replaced: Collection[str]) -> None:
    """DataError when a row lies outside the segments that are replaced, unless none is."""
    outside = {entry["add"]["partitionValues"][SEGMENT] for entry in entries} - set(replaced)
    if replaced and outside:
        raise DataError(f"{half}: rows of segment '{min(outside)}', which is not replaced. Nothing was committed.")


def _paths(half: Path, entries: Iterable[Mapping[str, Any]]) -> list[Path]:
    """The files of log entries that add them."""
    return [half / unquote(entry["add"]["path"]) for entry in entries]


def _write(frame: DataFrame, half: Path, transaction: Any, replaced: str | None) -> list[Any]:
    """Write and sync a transaction's files, as Spark's own Delta writer does. Returns Delta's actions."""
    spark = frame.sparkSession
    jvm, session = cast("Any", spark._jvm), cast("Any", spark._jsparkSession)
    delta, nothing, modes = jvm.org.apache.spark.sql.delta, jvm.scala.Option.empty(), jvm.org.apache.spark.sql.SaveMode
    empty = jvm.PythonUtils.toScalaMap({})
    settings = jvm.PythonUtils.toScalaMap({} if replaced is None else {"replaceWhere": replaced})
    options = delta.DeltaOptions(settings, session.sessionState().conf())
    mode = modes.Append if replaced is None else modes.Overwrite
    columns = jvm.PythonUtils.toSeq([])
    try:
        writer = delta.commands.WriteIntoDelta(
            transaction.deltaLog(), mode, options, columns, empty, frame._jdf, nothing, nothing, False
        )
        written = writer.writeAndReturnCommitData(transaction, session, nothing, False).actions()
        actions = list(jvm.scala.jdk.javaapi.CollectionConverters.asJava(written))
        entries = (json.loads(action.json()) for action in actions)
        _store(half, [half / unquote(entry["add"]["path"]) for entry in entries if "add" in entry])
        return actions
    except Exception as error:
        if is_conflict(error):
            raise conflict_with(half) from error
        if is_schema_mismatch(error):
            raise other_columns(half) from error
        raise


def _store(half: Path, files: Sequence[Path]) -> None:
    """Sync the files that Spark wrote, and the checksums that Hadoop verifies them against."""
    checksums = (path.with_name(f".{path.name}.crc") for path in files)
    durable.sync_files([*files, *(path for path in checksums if path.exists())], half)


@dataclass(frozen=True)
class FileAct:
    """An operation whose workers write files themselves: its half, kind and id, and the columns of its files.

    `columns` are (name, Spark type). Names of its files begin with `part-<act id>-`. `replacing` maps each segment to
    replace to the paths of its files in the half. `takes_narrower`: the rows come from outside, so they may have the
    types that columns had before they were widened, like the half's older files.
    """

    half: Path
    kind: str
    id: str
    columns: Sequence[tuple[str, str]]
    replacing: Mapping[str, Collection[str]] = field(default_factory=dict)
    takes_narrower: bool = False


@dataclass(frozen=True)
class Written:
    """Rows written to the half's folder: the log entries of their files, and the state to commit with them."""

    files: Sequence[Mapping[str, object]]
    state: HalfState


def commit_files(spark: SparkSession | None, act: FileAct, write: Callable[[], Written]) -> int:
    """Let `write` write data files, and commit them with their state, in one commit.

    For operations whose state depends on rows that are known only after reading them. Call it under the half's lock.
    Returns the version of the commit. Raises OvertakenError when another operation committed first, or when the files
    to replace are not the current ones. Raises ConflictError when the half does not have the written columns. In these
    cases, and when `write` raises, nothing was changed and the files are deleted. `spark` may be None for a half on an
    object store, where Spark's own writer never commits.
    """
    failpoint(act.kind, "before")
    with _files_removed_after(BaseException, act):
        commit = _files_committer(spark, act)
        written = write()
        # The workers have already synced the bytes of their files.
        durable.sync_folders(_paths(act.half, written.files), act.half)
    failpoint(act.kind, "inside")
    with _files_removed_after(OvertakenError, act):  # after any other error they stay: the commit may have succeeded
        version = commit(written)
    failpoint(act.kind, "after")
    return version


def commit_rewritten(act: FileAct, write: Callable[[], Sequence[Mapping[str, object]]], note: str) -> int:
    """Let `write` write files with the rows of those of `act.replacing`, and commit them in the place of these.

    No row changes and the half keeps its state; its history shows `note`. Otherwise as `commit_files`. ConflictError
    also when only Spark must commit to the half.
    """
    with _files_removed_after(BaseException, act):
        log = LogTransaction(act.half, act.columns)
        if features := log.foreign_features:
            raise changed_by_others(act.half, f"it has {', '.join(features)}")
        files = write()
        durable.sync_folders(_paths(act.half, files), act.half)
    with _files_removed_after(OvertakenError, act):
        return log.commit_rewritten(files, [path for paths in act.replacing.values() for path in paths], note)


@contextmanager
def _files_removed_after(error: type[BaseException], act: FileAct) -> Iterator[None]:
    try:
        yield
    except error:
        for path in act.half.glob(f"*/part-{act.id}-*.parquet"):
            path.unlink(missing_ok=True)
        raise


def _files_committer(spark: SparkSession | None, act: FileAct) -> Callable[[Written], int]:
    """Begin a transaction on the newest version. Returns the function that commits the written files in it."""
    log = LogTransaction(act.half, act.columns, takes_narrower=act.takes_narrower)
    if log.is_plain:
        log.require_replaceable(act.replacing)
        if log.files_of(act.replacing) != {path for paths in act.replacing.values() for path in paths}:
            raise conflict_with(act.half)
        return lambda written: log.commit(written.state, written.files, act.replacing)
    _refuse_mirror(act.half)
    assert spark is not None
    transaction = _begin(spark, act)
    gone = _replaced_files(spark, act, transaction)
    return lambda written: _commit_files(spark, act, transaction, written, gone)


def _begin(spark: SparkSession, act: FileAct) -> Any:
    """A transaction of Delta's own, after the checks that Spark's own writer would make; that writer is bypassed."""
    jvm: Any = spark._jvm
    transaction = _start(spark, act.half)
    metadata = transaction.metadata()
    settings = dict(jvm.scala.jdk.javaapi.CollectionConverters.asJava(metadata.configuration()))
    refuse_columns(act.half, metadata.schemaString(), settings, act.columns, takes_narrower=act.takes_narrower)
    return transaction


def _refuse_mirror(half: Path) -> None:
    """ConflictError in a warehouse on an object store, which Delta's own writer does not know of."""
    if mirror_at(half) is not None:
        features = ", ".join(LogTransaction(half).foreign_features)
        raise changed_by_others(half, f"it has {features}, with which only Spark can commit, and not to a store")


def _replaced_files(spark: SparkSession, act: FileAct, transaction: Any) -> list[Any]:
    """Delta's remove actions for the replaced files. The transaction records that it read these segments."""
    if not act.replacing:
        return []
    jvm: Any = spark._jvm
    parser = spark._jsparkSession.sessionState().sqlParser()
    mine = jvm.PythonUtils.toSeq([parser.parseExpression(_in_segments(act.replacing))])
    files = jvm.scala.jdk.javaapi.CollectionConverters.asJava(transaction.filterFiles(mine, False))
    if {unquote(file.path()) for file in files} != {path for paths in act.replacing.values() for path in paths}:
        raise conflict_with(act.half)
    return [file.remove() for file in files]


def _in_segments(names: Iterable[str]) -> str:
    """SQL condition: a row belongs to one of these segments."""
    quoted = ", ".join("'" + name.replace("'", "''") + "'" for name in names)
    return f"{SEGMENT} IN ({quoted})"


def _commit_files(spark: SparkSession, act: FileAct, transaction: Any, written: Written, gone: Sequence[Any]) -> int:
    jvm: Any = spark._jvm
    actions = [jvm.org.apache.spark.sql.delta.actions.Action.fromJson(json.dumps(entry)) for entry in written.files]
    replaced = _in_segments(act.replacing) if gone else None
    return _commit(spark, act.half, written.state, transaction, [*actions, *gone], replaced)


def _commit(
    spark: SparkSession, half: Path, state: HalfState, transaction: Any, actions: Sequence[Any], replaced: str | None
) -> int:
    """Commit a Delta transaction with `actions` and our state, behind the fence, and sync it. Returns the version."""
    jvm: Any = spark._jvm
    fence, number = fence_of(half), state.act.number
    if _newest_number(half, transaction, fence) >= number:
        raise conflict_with(half)
    transaction.updateSetTransaction(fence, number, jvm.scala.Option.empty())
    delta, nothing, some = jvm.org.apache.spark.sql.delta, jvm.scala.Option.empty(), jvm.scala.Option.apply
    # The values that Spark's own Delta writer records for a write to an existing table: mode, predicate and our state.
    by = some(jvm.PythonUtils.toSeq([]))
    modes = jvm.org.apache.spark.sql.SaveMode
    mode, where = (modes.Append, nothing) if replaced is None else (modes.Overwrite, some(replaced))
    note = some(to_user_metadata(state))
    operation = getattr(delta, "DeltaOperations$Write")(mode, by, where, note, *(nothing,) * 5)
    try:
        version = int(transaction.commit(jvm.PythonUtils.toSeq(list(actions)), operation))
    except Exception as error:
        if is_conflict(error):
            raise conflict_with(half) from error
        raise
    sync_log(half, version)
    return version


def _newest_number(half: Path, transaction: Any, fence: str) -> int:
    """The number of the newest operation in the version that a transaction reads, on which it depends from now on.

    Delta then lets the transaction fail if another writer moves the fence before it commits. Delta's own `txnVersion`
    does both, but reconstructs the state of the whole table for the number, with a Spark job (ADR 42).
    """
    newest = fence_at(half, transaction.readVersion(), fence)
    if newest is None:
        return int(transaction.txnVersion(fence))
    getattr(transaction.readTxn(), "$plus$eq")(fence)
    return newest


def commit_columns(
    half: Path,
    state: HalfState,
    fields: Sequence[Mapping[str, Any]],
    widened: Collection[str],
    start_spark: Callable[[], SparkSession],
) -> int:
    """Add columns to a half and widen the types of those in `widened`, with the half's state. Writes no rows.

    `fields` are columns as a Delta schema has them. Call it under the half's lock. Returns the version of the commit.
    Raises OvertakenError when another operation committed first, and nothing was changed then. `start_spark` is called
    only for a half whose Delta features ask for Spark's own writer, as in `commit_state`.
    """
    kind, log = state.act.kind, LogTransaction(half)
    failpoint(kind, "before")
    failpoint(kind, "inside")
    if log.is_plain:
        version = log.commit_columns(state, fields, widened)
    else:
        version = _commit_columns_by_spark(start_spark(), half, state, fields, widened)
    failpoint(kind, "after")
    return version


def _commit_columns_by_spark(
    spark: SparkSession, half: Path, state: HalfState, fields: Sequence[Mapping[str, Any]], widened: Collection[str]
) -> int:
    _refuse_mirror(half)
    jvm: Any = spark._jvm
    transaction = _start(spark, half)
    metadata = json.loads(transaction.metadata().json())["metaData"]
    schema, settings = grown_columns(metadata["schemaString"], metadata.get("configuration", {}), fields, widened)
    changed = {**metadata, "schemaString": schema, "configuration": settings}
    actions = jvm.org.apache.spark.sql.delta.actions
    transaction.updateMetadata(actions.Action.fromJson(json.dumps({"metaData": changed})), False)
    return _commit(spark, half, state, transaction, [], None)
