"""Transactions of ours: one log entry with state, added and removed files, directly behind a checked version.

The entry is written only if no other commit has that version (`hybrid.lake.entry`). So what was checked still holds
when the entry exists. After a foreign commit it is checked again on its version (docs/adr/0043, 0058, 0062).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from hybrid.errors import ConflictError, OvertakenError
from hybrid.lake.checkpoint import last_checkpoint, write_checkpoint
from hybrid.lake.entry import (
    Action,
    add_action,
    commit_info,
    entry_text,
    fence_action,
    put_entry,
    remove_action,
    unknown_outcome,
)
from hybrid.lake.entry_file import Put, remove_unfinished
from hybrid.lake.half_head import forget_head
from hybrid.lake.layout import fence_of, spark_columns
from hybrid.lake.log import ADDED, WIDENED, HalfSnapshot, listed_columns, open_half
from hybrid.lake.log_entries import absolute_path, fence_at, newest_version, read_commit, state_at
from hybrid.lake.log_sync import sync_log
from hybrid.table.columns import SEGMENT
from hybrid.table.names import segment_folder
from hybrid.table.state import HalfState, to_user_metadata

# Each foreign commit that comes first costs one attempt.
_ATTEMPTS = 20
# As in Delta: readers read the entries since the last checkpoint.
_CHECKPOINT_EVERY = 10
# Writer features that need nothing of a commit without columns and constraints, which removes whole files at most.
_FEATURES = frozenset({"appendOnly", "invariants", "timestampNtz"})
_WRITER_VERSIONS = (1, 2, 7)
_FOREIGN = ("delta.constraints.", "delta.columnMapping.")


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
        self._base = open_half(half)
        self._files: list[tuple[str, int, str]] | None = None
        since = () if planned is None else range(planned + 1, self._base.version + 1)
        if any(state_at(half, version) is not None for version in since):
            raise conflict_with(half)
        if columns:
            self.require_columns(columns, takes_narrower=takes_narrower)

    @property
    def foreign_features(self) -> list[str]:
        """What somebody has turned on in this half and asks more of a writer than this one does: by name."""
        protocol = self._base.head.protocol
        features = {*(protocol.writer_features or []), *(protocol.reader_features or [])} - _FEATURES
        is_known = protocol.min_writer_version in _WRITER_VERSIONS
        return sorted(features) or ([] if is_known else [f"writer version {protocol.min_writer_version}"])

    @property
    def is_plain(self) -> bool:
        """Whether a transaction of ours may commit to this half."""
        return not self.foreign_features

    def require_columns(self, columns: Sequence[tuple[str, str]], *, takes_narrower: bool = False) -> None:
        """ConflictError unless rows with these columns, (name, Spark type), fit the half."""
        settings, schema = self._base.properties, self._base.columns
        refuse_columns(self._half, schema, settings, columns, takes_narrower=takes_narrower)

    def require_replaceable(self, segments: Collection[str], planned: int | None = None) -> None:
        """OvertakenError when somebody has changed rows of these segments since version `planned`, where it is given.

        ConflictError when the half takes new rows only.
        """
        if segments and self._base.properties.get("delta.appendOnly", "").lower() == "true":
            raise changed_by_others(self._half, "it has delta.appendOnly")
        if planned is not None:
            self._refuse_touched(segments, planned, self._base.version)

    def files_of(self, segments: Collection[str]) -> set[str]:
        """The paths below the half, decoded, of these segments' files."""
        names = set(segments)
        return {unquote(path) for path, _, segment in self._stored_files() if segment in names} if names else set()

    def _removals(self, is_chosen: Callable[[str, str], bool], *, data_change: bool) -> list[Action]:
        """The removals of the files of the checked version that are chosen by decoded path and segment."""
        return [
            remove_action(path, size, segment, data_change=data_change)
            for path, size, segment in self._stored_files()
            if is_chosen(unquote(path), segment)
        ]

    def _stored_files(self) -> list[tuple[str, int, str]]:
        """The files of the checked version: path as the log has it, bytes, segment. Read once for each version."""
        if self._files is None:
            actions = pa.table(self._base.table.get_add_actions(flatten=True))
            files = actions.select(["path", "size_bytes", f"partition.{SEGMENT}"])
            self._files = list(zip(*(column.to_pylist() for column in files.columns), strict=True))
        return self._files

    def commit(self, state: HalfState, added: Sequence[Mapping[str, Any]], replacing: Collection[str] = ()) -> int:
        """Write the log entry with a state and the entries of `added` files, sync it, and return its version.

        The entry removes all files of the segments `replacing`. After an error other than OvertakenError and
        ConflictError the entry may exist.
        """
        names = set(replacing)

        def actions() -> list[Action]:
            removals = self._removals(lambda _, segment: segment in names, data_change=True) if names else []
            return [*_additions(added), *removals]

        return self._commit(actions, state, is_append=not names, replacing=names)

    def commit_rewritten(self, added: Sequence[Mapping[str, Any]], removed: Collection[str], note: str) -> int:
        """Write an entry in which files take the place of others with the same rows, and sync it. Returns its version.

        `removed` are decoded paths below the half. The half keeps its state; its history shows `note`. OvertakenError
        when a file to remove is no longer current, or when the half's columns have changed.
        """
        paths = set(removed)

        def actions() -> list[Action]:
            removals = self._removals(lambda path, _: path in paths, data_change=False)
            if len(removals) < len(paths):
                raise conflict_with(self._half)
            return [*_additions(added), *removals]

        return self._commit(actions, note, is_append=False)

    def commit_columns(self, state: HalfState, fields: Sequence[Mapping[str, Any]], widened: Collection[str]) -> int:
        """Write an entry with a state that adds or widens columns; otherwise as `commit`. See `grown_columns`."""
        return self._commit(lambda: [self._columns_action(fields, widened)], state, is_append=False)

    def _commit(
        self,
        actions: Callable[[], list[Action]],
        act: HalfState | str,
        *,
        is_append: bool,
        replacing: Collection[str] = (),
    ) -> int:
        """Write an entry behind the checked version, or behind foreign commits that come first. Returns its version.

        `actions` gives what it does to the checked version. `act`: the state that it makes current, or the note of an
        entry that keeps the half's.
        """
        for _ in range(_ATTEMPTS):
            version = self._base.version + 1
            note, fence = act, list[Action]()
            if not isinstance(act, str):
                self._refuse_outdated(act)
                note, fence = to_user_metadata(act), [fence_action(fence_of(self._half), act.act.number)]
            text = entry_text([commit_info(str(note), version - 1, is_append=is_append), *fence, *actions()])
            match put_entry(self._half, version, text):
                case Put.MADE:
                    sync_log(self._half, version)
                    self._write_checkpoint(version)
                    return version
                case Put.UNKNOWN:
                    raise unknown_outcome(self._half, version)
            self._follow(replacing)
        raise conflict_with(self._half)

    def _refuse_outdated(self, state: HalfState) -> None:
        """OvertakenError when the fence of the checked version is at this operation's number, or beyond it."""
        fence = fence_of(self._half)
        newest = fence_at(self._half, self._base.version, fence)
        if newest is None:  # the log was cleaned past the newest own commit, but the checkpoint has it
            newest = self._base.table.transaction_version(fence)
        if newest is not None and newest >= state.act.number:
            raise conflict_with(self._half)

    def _columns_action(self, fields: Sequence[Mapping[str, Any]], widened: Collection[str]) -> Action:
        """The half's metadata with columns added or widened."""
        there = self._base.head.metadata
        schema, settings = grown_columns(self._base.columns, there.configuration, fields, widened)
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
        return {"metaData": {name: value for name, value in metadata.items() if value is not None}}

    def _follow(self, replacing: Collection[str] = ()) -> None:
        """Check the version that is the newest by now.

        OvertakenError unless only rows and files changed since, and none of the segments `replacing`. A foreign
        OPTIMIZE changes no rows: its files are removed like those that they took the place of.
        """
        known, newest = self._base.version, newest_version(self._half, self._base.version)
        commits = [read_commit(self._half, version) for version in range(known + 1, newest + 1)]
        if any(commit is None or commit.state is not None or not commit.is_plain for commit in commits):
            raise conflict_with(self._half)
        self._refuse_touched(replacing, known, newest)
        self._base, self._files = HalfSnapshot(self._half, replace(self._base.head, version=newest)), None

    def _refuse_touched(self, segments: Collection[str], known: int, newest: int) -> None:
        """OvertakenError when a commit after version `known` added or removed rows of these segments."""
        if not segments or known == newest:
            return
        ours = {absolute_path(self._half, path) for path in self.files_of(segments)}
        folders = {segment_folder(name) for name in segments}
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
                remove_unfinished(self._half)
        except Exception:  # the commit is done, and the next one tries again
            logging.getLogger(__name__).warning("%s: no checkpoint of version %s.", self._half, version, exc_info=True)
            forget_head(self._half)  # the log may be damaged below what is followed: who opens it next reads it


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


def _additions(entries: Sequence[Mapping[str, Any]]) -> list[Action]:
    return [add_action(entry["add"]) for entry in entries]
