"""Reverts: one commit restores the segments that replacements removed, exactly and with their hidden columns."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.compaction_json import COMPACTION_TASK
from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, DataError, NotFoundError
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.half_frames import rows_in
from hybrid.lake.layout import physical_columns, physical_ddl, quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.log_entries import acts_between, has_entry, read_commit
from hybrid.lake.table_context import TableContext
from hybrid.progress import counted
from hybrid.replace.diff import Difference, difference
from hybrid.replace.lineage import EntryState, ReplacementEntry, entries_of, find_entry, lineage_of
from hybrid.replace.net_delete_guard import refuse_swallowing
from hybrid.replace.refresh_guard import refreshes_of, refuse_refreshed
from hybrid.replace.report import JobReport, numbers, report_of, shown
from hybrid.replace.swap import Swap, commit_swap, require_offline
from hybrid.store.mirror import for_all, mirror_at
from hybrid.table.state import PURGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Operations that remove rows without leaving a marker where no older row remains.
_REMOVING = frozenset({PURGE, "retention"})
_TIME_TRAVEL = ("TIME_TRAVEL", "VERSION_NOT_CONTIGUOUS", "DELTA_VERSION_NOT_FOUND", "retention")


@dataclass(frozen=True)
class _Taken:
    """What a revert takes back: one entry, or a backfill's. `entries` are newest first and share no segment."""

    id: str
    entries: tuple[ReplacementEntry, ...]

    @property
    def old(self) -> tuple[str, ...]:
        """The segments that the revert restores."""
        return tuple(name for entry in self.entries for name in entry.lineage.segments_from)

    @property
    def new(self) -> tuple[str, ...]:
        """The segments that the revert removes."""
        return tuple(name for entry in self.entries for name in entry.lineage.segments_to)

    @property
    def first(self) -> ReplacementEntry:
        """The oldest entry: what any entry replaced existed before it."""
        return self.entries[-1]


@dataclass(frozen=True)
class _RevertRequest:
    """The options of a revert."""

    dry_run: bool
    reason: str | None
    user: str | None
    act_id: str


def revert(
    table: TableContext,
    entry_id: str,
    *,
    dry_run: bool = False,
    reason: str | None = None,
    user: str | None = None,
    act_id: str | None = None,
) -> JobReport:
    """Reverts the replacement, backfill swap or revert `entry_id`: restores its old segments in place of its new ones.

    NotFoundError when there is no such entry. ConflictError when it is reverted already, when newer work has touched
    its segments, or when the old rows are no longer retained. Nothing was changed then.
    """
    require_offline(table.spec)
    arguments = _RevertRequest(dry_run, reason, user, act_id or new_act_id("revert"))

    def attempt() -> JobReport:
        base = table.half(Half.OFFLINE)
        entries = entries_of(base)
        entry = find_entry(entries, entry_id)
        if entry.state is EntryState.REVERTED:
            names = {entry.id, entry.lineage.backfill} - {None}
            by = next(e for e in entries if e.state is EntryState.ACTIVE and e.lineage.reverts in names)
            raise ConflictError(f"'{entry.id}' has been reverted already, by '{by.id}' at {by.created_at}.")
        return _revert(table, _Taken(entry.id, (entry,)), base, entries, arguments)

    return table.until_not_overtaken(attempt)


def revert_backfill(
    table: TableContext,
    backfill: str,
    *,
    reason: str | None = None,
    user: str | None = None,
    act_id: str | None = None,
) -> JobReport:
    """Reverts every active swap of a backfill in one commit. Errors as for `revert`."""
    arguments = _RevertRequest(False, reason, user, act_id or new_act_id("revert"))

    def attempt() -> JobReport:
        base = table.half(Half.OFFLINE)
        entries = entries_of(base)
        mine = [entry for entry in entries if entry.lineage.backfill == backfill]
        if not mine:
            raise NotFoundError(f"Backfill '{backfill}' has corrected nothing of '{table.name}' yet.")
        standing = tuple(entry for entry in mine if entry.state is EntryState.ACTIVE)
        if not standing:
            raise ConflictError(f"All that backfill '{backfill}' has corrected has been reverted already.")
        return _revert(table, _Taken(backfill, standing), base, entries, arguments)

    return table.until_not_overtaken(attempt)


def _revert(
    table: TableContext,
    taken: _Taken,
    base: HalfSnapshot,
    entries: Sequence[ReplacementEntry],
    asked: _RevertRequest,
) -> JobReport:
    for entry in taken.entries:
        if not has_entry(base.path, entry.version):
            raise _expired(taken, f"its commit {entry.version} has left the log")
        _refuse_if_not_newest(entry, entries, base)
        _refuse_if_superseding_went(entry, base)
    restored = _old_rows(table, base.path, taken)
    table.bench.progress.say(f"Comparing what '{taken.id}' replaced with what '{table.name}' holds.")
    names = (taken.new, taken.old)
    for entry in taken.entries:
        refuse_refreshed(table.bench, base, entry, entries, restored)
        _refuse_if_written_anew(entry, entries, base)
    refuse_swallowing(table, base, names[0], restored)
    diff = difference(table.spec, rows_in(table.bench, open_half(base.path), names[0]), restored)
    sentence = _sentence(taken, diff, asked.dry_run)
    if asked.dry_run:
        return report_of(table.name, names, diff, sentence, dry_run=True)
    who = {"reason": asked.reason, "user": asked.user}
    lineage = lineage_of(base, names, diff, sentence, **who, reverts=taken.id)
    table.bench.progress.say(f"Putting {shown(names[1] or names[0])} of '{table.name}' back.")

    def holds(now: HalfSnapshot) -> bool:
        for entry in taken.entries:
            _refuse_if_superseding_went(entry, now)
        return refreshes_of(now) == refreshes_of(base)

    swap = Swap(asked.act_id, "revert", base, lineage, lambda _: restored, holds)
    version = commit_swap(table, swap)
    return report_of(table.name, names, diff, sentence, act=asked.act_id, version=version)


def _refuse_if_not_newest(entry: ReplacementEntry, entries: Sequence[ReplacementEntry], base: HalfSnapshot) -> None:
    """ConflictError when the entry's segments have changed since the entry. `entries` are newest first.

    An entry that was reverted and its revert cancel out.
    """
    touched, taken_back = _touched(entry), {revert.id for revert in _restoring(entry, entries)}
    for newer in entries[: entries.index(entry)]:
        common = sorted(touched & _touched(newer))
        if common and newer.state is EntryState.ACTIVE and newer.id not in taken_back:
            raise ConflictError(
                f"'{entry.id}' cannot be reverted: {shown(common)} has been changed again since, by '{newer.id}' at "
                f"{newer.created_at}. Nothing was changed.",
                hint=f"Revert the newer one first: hybrid replacement revert {base.path.parent.name} {newer.id}",
            )


def _touched(entry: ReplacementEntry) -> set[str]:
    return {*entry.lineage.segments_from, *entry.lineage.segments_to}


def _restoring(entry: ReplacementEntry, entries: Sequence[ReplacementEntry]) -> list[ReplacementEntry]:
    """The reverts of entries newer than `entry`: after them, its segments hold its rows again, in other files.

    `entries` and the result are newest first.
    """
    newer = entries[: entries.index(entry)]
    undone = {
        name for other in newer if other.state is EntryState.REVERTED for name in (other.id, other.lineage.backfill)
    }
    return [other for other in newer if other.state is EntryState.ACTIVE and other.lineage.reverts in undone - {None}]


def _refuse_if_written_anew(entry: ReplacementEntry, entries: Sequence[ReplacementEntry], base: HalfSnapshot) -> None:
    """ConflictError when the segments do not consist of exactly the files that the entry's commit wrote.

    Operations without a lineage entry, such as the full refresh of a flow, write segments too.
    """
    there = {file.path for file in base.files if file.segment in entry.lineage.segments_to}
    existing = {file.segment for file in base.files}
    written = _written_by([*_restoring(entry, entries), entry], base, entry.lineage.segments_to)
    gone = sorted(set(entry.lineage.segments_to) - existing)
    if gone:
        raise ConflictError(f"'{entry.id}' cannot be reverted: {shown(gone)} does not exist any more.")
    come = set(entry.lineage.segments_from) - set(entry.lineage.segments_to)
    if there != written or come & existing:
        names = sorted(come & existing) or list(entry.lineage.segments_to)
        raise ConflictError(
            f"'{entry.id}' cannot be reverted: {shown(names)} has been rewritten since. Nothing was changed."
        )


def _written_by(entries: Sequence[ReplacementEntry], base: HalfSnapshot, segments: Collection[str]) -> set[str]:
    """The files of some segments as the newest of these entries wrote each. The log holds all their commits."""
    files_of: dict[str, set[str]] = {}
    for entry in entries:
        commit = read_commit(base.path, entry.version)
        assert commit is not None
        for segment in set(segments) - files_of.keys():
            files = {file.path for file in commit.added if file.segment == segment}
            if files:
                files_of[segment] = files
    return set().union(*files_of.values())


def _refuse_if_superseding_went(entry: ReplacementEntry, base: HalfSnapshot) -> None:
    """ConflictError when rows that superseded a compaction's dropped rows may be gone: the old rows would show."""
    if entry.lineage.source != COMPACTION_TASK:
        return
    acts = acts_between(base.path, entry.version, base.version)
    gone = next((act for act in acts or () if act.kind in _REMOVING), None)
    if acts is None or gone is not None:
        by = f"'{gone.id}' of {gone.at} has" if gone is not None else "a commit whose entry has left the log may have"
        raise ConflictError(
            f"'{entry.id}' cannot be reverted: it left superseded rows out, and {by} removed rows that superseded "
            "them. Nothing was changed."
        )


def _old_rows(table: TableContext, path: Path, taken: _Taken) -> DataFrame:
    """The rows of the old segments as they were. ConflictError when they are no longer retained."""
    from pyspark.sql import functions as F

    names, version = taken.old, taken.first.lineage.version_before
    if not names:  # only new segments were added; nothing to restore
        return table.bench.session.createDataFrame([], physical_ddl(table.spec, Half.OFFLINE))
    try:
        old = open_half(path, version)
    except DataError as error:
        raise _expired(taken, str(error)) from error
    missing = _removed_of(path, [Path(file.path) for file in old.files if file.segment in names])
    if missing:
        raise _expired(taken, f"data file {missing[0]} has been removed")
    try:
        rows = rows_in(table.bench, old, names)
        existing = set(rows.columns)  # a column may have been added or widened since
        return rows.select(
            *(
                (quoted(name) if name in existing else F.lit(None)).cast(kind).alias(name)
                for name, kind in physical_columns(table.spec, Half.OFFLINE)
            )
        )
    except Exception as error:  # pyspark has one class for all errors of Delta; only the text distinguishes them
        if any(word in str(error) for word in _TIME_TRAVEL):
            raise _expired(taken, "Delta no longer reads that version") from error
        raise


def _removed_of(half: Path, files: Sequence[Path]) -> list[Path]:
    """The data files of a half that are gone: here, or on the warehouse's store, where it has one.

    The store decides: a mirror may still have what a purge, or vacuum, has removed there.
    """
    missing = [path for path in files if not path.exists()]
    mirror = mirror_at(half)
    if missing or mirror is None:
        return missing

    def look(path: Path) -> None:
        if mirror.client.size_of(mirror.key_of(half, path.relative_to(half).as_posix())) is None:
            missing.append(path)

    for_all(look, list(files))
    return sorted(missing)


def _expired(taken: _Taken, why: str) -> ConflictError:
    first = taken.first
    return ConflictError(
        f"'{taken.id}' of {first.created_at} cannot be reverted: its old rows (version {first.lineage.version_before}) "
        f"are no longer retained: {why}."
    )


def _sentence(taken: _Taken, found: Difference, dry_run: bool) -> str:
    gone = [name for name in taken.new if name not in taken.old]
    parts = []
    if taken.old:
        parts.append(f"{shown(taken.old)} {'would be' if dry_run else 'is'} as before again")
    if gone:
        parts.append(f"{shown(gone)} {'would be' if dry_run else 'is'} removed")
    start, end = ("Would revert", " Nothing was touched.") if dry_run else ("Reverted", "")
    what = f"'{taken.id}'" + (f" ({counted(len(taken.entries), 'swap')})" if len(taken.entries) > 1 else "")
    return f"{start} {what}: {' and '.join(parts)} ({numbers(found)}).{end}"
