"""Delta transactions by delta-rs: one log entry with state, added and removed files, directly behind a checked version.

delta-rs writes the entry only if no other commit has that version; on local disks by a hard link. So what was checked
still holds when the entry exists. After a foreign commit it is checked again on its version (docs/adr/0043, 0058).
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.transaction import AddAction, RemoveAction

from hybrid.clock import wall_clock_ms
from hybrid.errors import ConflictError, DataError, OvertakenError
from hybrid.lake.checkpoint import last_checkpoint, write_checkpoint
from hybrid.lake.layout import fence_of, spark_columns
from hybrid.lake.log import ADDED, WIDENED, listed_columns
from hybrid.lake.log_entries import (
    Commit,
    absolute_path,
    entry_path,
    fence_at,
    has_entry,
    newest_version,
    read_commit,
    state_at,
)
from hybrid.lake.log_sync import sync_log
from hybrid.runtime import durable
from hybrid.table.columns import SEGMENT
from hybrid.table.state import Act, HalfState, to_user_metadata

# Each foreign commit that comes first costs one attempt.
_ATTEMPTS = 20
# As in Delta: readers read the entries since the last checkpoint.
_CHECKPOINT_EVERY = 10
# Writer features that need nothing of a commit without columns and constraints, which removes whole files at most.
_FEATURES = frozenset({"appendOnly", "invariants", "timestampNtz"})
_WRITER_VERSIONS = (1, 2, 7)
_FOREIGN = ("delta.constraints.", "delta.columnMapping.")
# Paths below a half that every writer of a log spells alike: readers match a removal to its file by this text.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9_.=/-]+")


@dataclass(frozen=True)
class _Entry:
    """A log entry: its files, the text that the half's history shows, and the operation whose fence it moves."""

    added: Sequence[Mapping[str, Any]]
    removals: Sequence[RemoveAction]
    note: str
    is_append: bool
    act: Act | None = None


class LogTransaction:
    """A transaction on the newest version of a half. Call it under the half's lock.

    `columns` are (name, Spark type) of the rows to write; without them only a state is committed. `takes_narrower`: a
    column may have the type that it had before it was widened. No own operation may have committed after version
    `planned`, where it is given.

    Raises OvertakenError when another operation committed first, and ConflictError when the half's columns do not fit.
    Nothing was changed then.
    """

    def __init__(
        self,
        half: Path,
        columns: Sequence[tuple[str, str]] = (),
        *,
        takes_narrower: bool = False,
        planned: int | None = None,
    ) -> None:
        self._half = half
        self._table = DeltaTable(str(half))
        self._files: list[tuple[str, int, str]] | None = None
        since = () if planned is None else range(planned + 1, self._table.version() + 1)
        if any(state_at(half, version) is not None for version in since):
            raise conflict_with(half)
        if columns:
            self.require_columns(columns, takes_narrower=takes_narrower)

    @property
    def foreign_features(self) -> list[str]:
        """What somebody has turned on in this half and asks more of a writer than delta-rs is trusted with: by name."""
        protocol = self._table.protocol()
        features = {*(protocol.writer_features or []), *(protocol.reader_features or [])} - _FEATURES
        is_known = protocol.min_writer_version in _WRITER_VERSIONS
        return sorted(features) or ([] if is_known else [f"writer version {protocol.min_writer_version}"])

    @property
    def is_plain(self) -> bool:
        """Whether delta-rs may commit to this half."""
        return not self.foreign_features

    def require_columns(self, columns: Sequence[tuple[str, str]], *, takes_narrower: bool = False) -> None:
        """ConflictError unless rows with these columns, (name, Spark type), fit the half."""
        settings, schema = self._table.metadata().configuration, self._table.schema().to_json()
        refuse_columns(self._half, schema, settings, columns, takes_narrower=takes_narrower)

    def require_replaceable(self, segments: Collection[str], planned: int | None = None) -> None:
        """OvertakenError when somebody has changed rows of these segments since version `planned`, where it is given.

        ConflictError when the half takes new rows only.
        """
        if segments and self._table.metadata().configuration.get("delta.appendOnly", "").lower() == "true":
            raise changed_by_others(self._half, "it has delta.appendOnly")
        if planned is not None:
            self._refuse_touched(segments, planned, self._table.version())

    def files_of(self, segments: Collection[str]) -> set[str] | None:
        """The paths below the half of these segments' files. None when delta-rs must not remove them.

        It spells the paths of removals in its own way in the log, where other writers may have used other codes.
        """
        removals = self._removals(segments)
        return None if removals is None else {removal.path for removal in removals}

    def _removals(self, segments: Collection[str]) -> list[RemoveAction] | None:
        names = set(segments)
        removals = list(self._remove(lambda _, segment: segment in names, data_change=True)) if names else []
        return removals if all(is_plain_path(removal.path) for removal in removals) else None

    def _remove(self, is_chosen: Callable[[str, str], bool], *, data_change: bool) -> Iterator[RemoveAction]:
        """The removals of the files of the checked version that are chosen by path and segment."""
        now_ms = wall_clock_ms()
        for path, size, segment in self._stored_files():
            if is_chosen(path, segment):
                yield RemoveAction(path, data_change, now_ms, size, {SEGMENT: segment})

    def _stored_files(self) -> list[tuple[str, int, str]]:
        """The files of the checked version: path as the log has it, bytes, segment. Read once for each version."""
        if self._files is None:
            actions = pa.table(self._table.get_add_actions(flatten=True))
            files = actions.select(["path", "size_bytes", f"partition.{SEGMENT}"])
            self._files = list(zip(*(column.to_pylist() for column in files.columns), strict=True))
        return self._files

    def commit(self, state: HalfState, added: Sequence[Mapping[str, Any]], replacing: Collection[str] = ()) -> int:
        """Write the log entry with a state and the entries of `added` files, sync it, and return its version.

        The entry removes all files of the segments `replacing`, for which `files_of` gave paths. After an error other
        than OvertakenError and ConflictError the entry may exist.
        """
        for _ in range(_ATTEMPTS):
            self._refuse_outdated(state)
            removals = self._removals(replacing)
            if removals is None:
                raise conflict_with(self._half)
            version = self._write_entry(_Entry(added, removals, to_user_metadata(state), not replacing, state.act))
            if version is not None:
                return version
            self._follow(replacing)
        raise conflict_with(self._half)

    def commit_rewritten(self, added: Sequence[Mapping[str, Any]], removed: Collection[str], note: str) -> int:
        """Write an entry in which files take the place of others with the same rows, and sync it. Returns its version.

        `removed` are plain paths below the half (`is_plain_path`). The half keeps its state; its history shows `note`.
        OvertakenError when a file to remove is no longer current, or when the half's columns have changed.
        """
        paths = set(removed)
        for _ in range(_ATTEMPTS):
            removals = list(self._remove(lambda path, _: path in paths, data_change=False))
            if len(removals) < len(paths):
                raise conflict_with(self._half)
            version = self._write_entry(_Entry(added, removals, note, is_append=False))
            if version is not None:
                return version
            self._follow()
        raise conflict_with(self._half)

    def _refuse_outdated(self, state: HalfState) -> None:
        """OvertakenError when the fence of the checked version is at this operation's number, or beyond it."""
        fence = fence_of(self._half)
        newest = fence_at(self._half, self._table.version(), fence)
        if newest is None:  # the log was cleaned past the newest own commit, but the checkpoint has it
            newest = self._table.transaction_version(fence)
        if newest is not None and newest >= state.act.number:
            raise conflict_with(self._half)

    def commit_columns(self, state: HalfState, fields: Sequence[Mapping[str, Any]], widened: Collection[str]) -> int:
        """Write an entry with a state that adds or widens columns; otherwise as `commit`. See `grown_columns`."""
        for _ in range(_ATTEMPTS):
            self._refuse_outdated(state)
            version, text = self._table.version() + 1, self._columns_entry(state, fields, widened)
            try:
                is_new = durable.create_text(entry_path(self._half, version), text)
            except OSError as error:
                if has_entry(self._half, version):
                    raise
                raise self._not_written(version, error) from error
            if is_new:
                return self._finish(version)
            self._follow()
        raise conflict_with(self._half)

    def _columns_entry(self, state: HalfState, fields: Sequence[Mapping[str, Any]], widened: Collection[str]) -> str:
        """The text of the entry behind the checked version: delta-rs changes a table's columns or its properties only.

        Delta's protocol: "Commit Provenance Information", "Transaction Identifiers", "Change Metadata".
        """
        there, now_ms = self._table.metadata(), wall_clock_ms()
        schema, settings = grown_columns(self._table.schema().to_json(), there.configuration, fields, widened)
        info = {
            "timestamp": now_ms,
            "operation": "WRITE",
            "operationParameters": {"mode": "Append", "partitionBy": "[]"},
            **_provenance(to_user_metadata(state), self._table.version(), is_append=False),
        }
        metadata = {
            "id": there.id,
            "name": there.name,
            "description": there.description,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema,
            "partitionColumns": there.partition_columns,
            "configuration": settings,
            "createdTime": there.created_time,
        }
        fence = {"appId": fence_of(self._half), "version": state.act.number, "lastUpdated": now_ms}
        known = {name: value for name, value in metadata.items() if value is not None}
        actions = ({"commitInfo": info}, {"txn": fence}, {"metaData": known})
        return "".join(json.dumps(action, separators=(",", ":")) + "\n" for action in actions)

    def _write_entry(self, entry: _Entry) -> int | None:
        """Write and sync an entry behind the checked version. Returns its version; None if another commit has that."""
        version = self._table.version() + 1
        metadata = _provenance(entry.note, version - 1, is_append=entry.is_append)
        fence = [] if entry.act is None else [Transaction(fence_of(self._half), entry.act.number)]
        try:
            self._table.create_write_transaction(
                [*(_add_action(file["add"]) for file in entry.added), *entry.removals],
                mode="append",
                schema=self._table.schema(),
                partition_by=[],
                commit_properties=CommitProperties(
                    custom_metadata=metadata, max_commit_retries=0, app_transactions=fence
                ),
                post_commithook_properties=PostCommitHookProperties(
                    create_checkpoint=False, cleanup_expired_logs=False
                ),
            )
        except Exception as error:
            # The log alone tells: delta-rs has one error for several reasons, and can fail behind the entry too.
            made = read_commit(self._half, version)
            if made is None and isinstance(error, OSError):
                raise self._not_written(version, error) from error
            if made is None:
                raise
            if not self._is_made_by(entry, made):
                return None
        return self._finish(version)

    def _finish(self, version: int) -> int:
        """Sync the entry of a version that was written, and return the version."""
        sync_log(self._half, version)
        self._write_checkpoint(version)
        return version

    def _not_written(self, version: int, error: OSError) -> DataError:
        return DataError(f"{self._half}: the log entry of version {version} was not written: {error}")

    def _is_made_by(self, entry: _Entry, made: Commit) -> bool:
        """Whether a commit in the log is that of an entry."""
        if (None if made.state is None else made.state.act) != entry.act:
            return False
        # Two processes may carry out one operation: the files tell whose entry it is.
        paths = {absolute_path(self._half, str(file["add"]["path"])) for file in entry.added}
        return paths == {file.path for file in (made.added if entry.act is not None else made.rewritten)}

    def _follow(self, replacing: Collection[str] = ()) -> None:
        """Check the version that is the newest by now.

        OvertakenError unless only rows and files changed since, and none of the segments `replacing`. A foreign
        OPTIMIZE changes no rows: its files are removed like those that they took the place of.
        """
        known, newest = self._table.version(), newest_version(self._half, self._table.version())
        commits = [read_commit(self._half, version) for version in range(known + 1, newest + 1)]
        if any(commit is None or commit.state is not None or not commit.is_plain for commit in commits):
            raise conflict_with(self._half)
        self._refuse_touched(replacing, known, newest)
        self._table, self._files = DeltaTable(str(self._half), version=newest), None

    def _refuse_touched(self, segments: Collection[str], known: int, newest: int) -> None:
        """OvertakenError when a commit after version `known` added or removed rows of these segments."""
        if not segments or known == newest:
            return
        ours = {absolute_path(self._half, path) for path in self.files_of(segments) or ()}
        folders = {f"{SEGMENT}={name}" for name in segments}
        for version in range(known + 1, newest + 1):
            commit = read_commit(self._half, version)
            if commit is None or any(file.segment in segments for file in commit.added):
                raise conflict_with(self._half)
            if any(path in ours or Path(path).parent.name in folders for path in commit.removed):
                raise conflict_with(self._half)

    def _write_checkpoint(self, version: int) -> None:
        try:
            if version - last_checkpoint(self._half) >= _CHECKPOINT_EVERY:
                write_checkpoint(self._half, version)
        except Exception:  # the commit is done, and the next one tries again
            logging.getLogger(__name__).warning("%s: no checkpoint of version %s.", self._half, version, exc_info=True)


def grown_columns(
    schema: str, settings: Mapping[str, str], fields: Sequence[Mapping[str, Any]], widened: Collection[str]
) -> tuple[str, dict[str, str]]:
    """A Delta schema (JSON) and a half's properties after `fields` of that schema's form were added or widened.

    `widened` are the names of the fields that exist in a narrower type. Files keep the types that they were written
    with; the properties list both kinds of columns for their readers (ADR 19).
    """
    document = json.loads(schema)
    kinds = {field["name"]: field["type"] for field in fields}
    there = {column["name"] for column in document["fields"]}
    document["fields"] = [
        {**column, "type": kinds.get(column["name"], column["type"])} for column in document["fields"]
    ]
    document["fields"] += [dict(field) for field in fields if field["name"] not in there]
    lists = {
        which: json.dumps(sorted({*listed_columns(settings, which), *names}))
        for which, names in ((ADDED, kinds.keys() - there), (WIDENED, widened))
    }
    return json.dumps(document), {**settings, **lists}


def _provenance(note: str, read_version: int, *, is_append: bool) -> dict[str, Any]:
    """What a commit's information says beside its time and operation."""
    return {
        "userMetadata": note,
        "readVersion": read_version,
        "isolationLevel": "Serializable",
        "isBlindAppend": is_append,
    }


def is_plain_path(path: str) -> bool:
    """Whether every writer of a log spells this path below a half alike, so that delta-rs may remove the file."""
    return _PLAIN_PATH.fullmatch(path) is not None


def refuse_columns(
    half: Path, schema: str, settings: Mapping[str, str], columns: Sequence[tuple[str, str]], *, takes_narrower: bool
) -> None:
    """ConflictError unless rows with these columns, (name, Spark type), fit a half with this Delta schema and settings.

    For writers that bypass Spark's own, which checks this.
    """
    there = {name: kind.lower() for name, kind in spark_columns(schema).items()}
    other = [name for name, kind in columns if there.get(name) != kind.lower().replace(" ", "")]
    if other and set(other) <= set(listed_columns(settings, WIDENED)):
        if not takes_narrower:
            raise other_columns(half)
        other = []
    foreign = [name for name in settings if name.startswith(_FOREIGN)]
    if other or foreign:
        what = f"column '{other[0]}' is not as the table's definition has it" if other else f"it has {foreign[0]}"
        raise changed_by_others(half, what)


def changed_by_others(half: Path, what: str) -> ConflictError:
    """The error of an operation that cannot write to a half since somebody else changed it."""
    return ConflictError(
        f"{half} was changed by somebody else: {what}. Nothing was written.",
        hint="Undo that change, then run this again: DESCRIBE HISTORY tells who made it.",
    )


def other_columns(half: Path) -> ConflictError:
    """The error of an operation whose rows do not fit the half's columns."""
    return ConflictError(
        f"The columns of {half} are not as this operation knows them: they are being changed. Nothing was written.",
        hint="Run it again; if that does not help, `hybrid table apply` again what changed them: it did not end.",
    )


def conflict_with(half: Path) -> OvertakenError:
    """The error of an operation that was planned before another one committed."""
    return OvertakenError(f"Another operation committed to {half} first.")


def _add_action(add: Mapping[str, Any]) -> AddAction:
    return AddAction(
        path=unquote(str(add["path"])),  # delta-rs encodes it
        size=int(add["size"]),
        partition_values=add["partitionValues"],
        modification_time=int(add["modificationTime"]),
        data_change=bool(add["dataChange"]),
        stats=str(add.get("stats") or "{}"),  # the user may have told Spark to collect none
    )
