"""Reverts: the segments that a replacement took away come back exactly, hidden columns and all, in one commit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.errors import ConflictError, DataError
from hybrid.lake.layout import TableLayout, physical_columns, quoted
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.workbench import Workbench, new_act_id
from hybrid.replace.diff import Difference, difference
from hybrid.replace.lineage import EntryState, Lineage, ReplacementEntry, entries_of, find_entry
from hybrid.replace.netted import refuse_swallowing
from hybrid.replace.refreshed import refuse_refreshed
from hybrid.replace.report import JobReport, numbers, report_of, shown
from hybrid.replace.swap import Swap, commit_swap, newest_rows, require_offline, rows_as_of
from hybrid.spec.table_config import Half, TableSpec
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TIME_TRAVEL = ("TIME_TRAVEL", "VERSION_NOT_CONTIGUOUS", "DELTA_VERSION_NOT_FOUND", "retention")


def revert(
    bench: Workbench,
    spec: TableSpec,
    layout: TableLayout,
    entry_id: str,
    *,
    dry_run: bool = False,
    reason: str | None = None,
    user: str | None = None,
    act_id: str | None = None,
) -> JobReport:
    """Takes back the replacement or revert `entry_id`: its old segments in place of its new ones.

    NotFoundError when there is no such entry; ConflictError when it has been taken back already, when newer work has
    touched its segments, or when the old rows are no longer retained. Nothing was changed then.
    """
    require_offline(spec)
    act = act_id or new_act_id("revert")
    return bench.until_not_overtaken(
        spec.name, lambda: _attempt(bench, spec, layout, entry_id, act, dry_run, (reason, user))
    )


def _attempt(
    bench: Workbench,
    spec: TableSpec,
    layout: TableLayout,
    entry_id: str,
    act_id: str,
    dry_run: bool,
    why_and_who: tuple[str | None, str | None],
) -> JobReport:
    base = open_half(layout.half(Half.OFFLINE))
    entries = entries_of(base)
    entry = find_entry(entries, entry_id)
    _refuse_if_not_newest(entry, entries, base)
    restored = _old_rows(bench, spec, base.path, entry)
    bench.progress.say(f"Comparing what '{entry.id}' replaced with what '{spec.name}' holds.")
    names = (entry.lineage.segments_to, entry.lineage.segments_from)
    refuse_refreshed(bench, base, entry, entries, restored)
    refuse_swallowing(bench, spec, layout, base, names[0], restored)
    found = difference(spec, _of(newest_rows(bench, base), names[0]), restored)
    sentence = _sentence(entry, found, dry_run)
    if dry_run:
        return report_of(spec.name, names, found, sentence, dry_run=True)
    lineage = _lineage(base, entry, found, sentence, why_and_who)
    bench.progress.say(f"Putting {shown(names[1] or names[0])} of '{spec.name}' back.")
    version = commit_swap(bench, spec, layout, Swap(act_id, "revert", base, lineage, lambda _: restored))
    return report_of(spec.name, names, found, sentence, act=act_id, version=version)


def _refuse_if_not_newest(entry: ReplacementEntry, entries: Sequence[ReplacementEntry], base: HalfSnapshot) -> None:
    """ConflictError when the entry's segments are no longer as it left them. `entries` are newest first."""
    later = entries[: entries.index(entry)]
    if entry.state is EntryState.REVERTED:
        by = next(e for e in later if e.lineage.reverts == entry.id and e.state is EntryState.ACTIVE)
        raise ConflictError(f"'{entry.id}' has been reverted already, by '{by.id}' at {by.created_at}.")
    touched = {*entry.lineage.segments_from, *entry.lineage.segments_to}
    for newer in later:
        common = sorted(touched & {*newer.lineage.segments_from, *newer.lineage.segments_to})
        if common:
            raise ConflictError(
                f"'{entry.id}' cannot be reverted: {shown(common)} has been changed again since, by '{newer.id}' at "
                f"{newer.created_at}. Nothing was changed.",
                hint=f"Revert the newer one first: hybrid replacement revert {base.path.parent.name} {newer.id}",
            )
    gone = sorted(set(entry.lineage.segments_to) - {file.segment for file in base.files})
    if gone:
        raise ConflictError(f"'{entry.id}' cannot be reverted: {shown(gone)} does not exist any more.")


def _old_rows(bench: Workbench, spec: TableSpec, path: Path, entry: ReplacementEntry) -> DataFrame:
    """The rows of the old segments as they were. ConflictError when they are no longer retained."""
    names, version = entry.lineage.segments_from, entry.lineage.version_before
    if not names:  # the entry added segments; nothing comes back
        return bench.spark.createDataFrame([], _ddl(spec))
    try:
        old = open_half(path, version)
    except DataError as error:
        raise _expired(entry, str(error)) from error
    missing = [file.path for file in old.files if file.segment in names and not Path(file.path).exists()]
    if missing:
        raise _expired(entry, f"data file {missing[0]} has been removed")
    try:
        return _of(rows_as_of(bench, old), names).select(
            *(quoted(name) for name, _ in physical_columns(spec, Half.OFFLINE))
        )
    except Exception as error:  # pyspark has one class for all that Delta refuses; its name for it stands in the text
        if any(word in str(error) for word in _TIME_TRAVEL):
            raise _expired(entry, "Delta no longer reads that version") from error
        raise


def _expired(entry: ReplacementEntry, why: str) -> ConflictError:
    return ConflictError(
        f"'{entry.id}' of {entry.created_at} cannot be reverted: its old rows (version {entry.lineage.version_before}) "
        f"are no longer retained: {why}."
    )


def _of(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    return rows.where(quoted(columns.SEGMENT).isin(list(names)))


def _ddl(spec: TableSpec) -> str:
    return ", ".join(f"`{name}` {kind}" for name, kind in physical_columns(spec, Half.OFFLINE))


def _lineage(
    base: HalfSnapshot,
    entry: ReplacementEntry,
    found: Difference,
    sentence: str,
    why_and_who: tuple[str | None, str | None],
) -> Lineage:
    return Lineage(
        segments_from=entry.lineage.segments_to,
        segments_to=entry.lineage.segments_from,
        version_before=base.version,
        rows_before=found.rows_before,
        rows_after=found.rows_after,
        added=found.added,
        removed=found.removed,
        changed=found.changed,
        result=sentence,
        reason=why_and_who[0],
        user=why_and_who[1],
        reverts=entry.id,
        previous=base.offline.last_lineage,
    )


def _sentence(entry: ReplacementEntry, found: Difference, dry_run: bool) -> str:
    old, new = entry.lineage.segments_from, entry.lineage.segments_to
    gone = [name for name in new if name not in old]
    parts = []
    if old:
        parts.append(f"{shown(old)} {'would be' if dry_run else 'is'} as before again")
    if gone:
        parts.append(f"{shown(gone)} {'would be' if dry_run else 'is'} removed")
    start, end = ("Would revert", " Nothing was touched.") if dry_run else ("Reverted", "")
    return f"{start} '{entry.id}': {' and '.join(parts)} ({numbers(found)}).{end}"
