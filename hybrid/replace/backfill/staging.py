"""Writes the segments of a correction beside the halves, in a half's layout, and describes them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from hybrid.config.table_config import Half
from hybrid.errors import DataError
from hybrid.lake.layout import in_files, physical_columns, quoted
from hybrid.lake.staged_frames import stage_segments
from hybrid.progress import counted
from hybrid.replace.backfill.base import Base
from hybrid.replace.backfill.correction import SHARED, Correction
from hybrid.table import columns
from hybrid.table.names import segment_folder
from hybrid.table.plans import Unit, WrittenSegment


def stage_units(base: Base, correction: Correction, folder: Path) -> list[Unit]:
    """Writes the touched segments as they will be, each in a folder of its name. Returns their units.

    The units do not have their buckets' positions yet. DataError when rows are not there as the correction counts them:
    a segment without staged rows is one that the run removes.
    """
    groups = correction.groups
    if not groups:
        return []
    base.bench.progress.say(f"Staging {counted(len(groups), 'swap')} of '{base.spec.name}'.")
    stored_columns = [quoted(name) for name, _ in physical_columns(base.spec, Half.OFFLINE)]
    frame = correction.rows().select(*stored_columns)
    if correction.needs_sort:
        frame = in_files(base.spec, frame)
    stage_segments(base.bench, frame, folder)
    names = [name for _, segments in groups for name in segments]
    written = written_segments(folder, names, correction.new)
    _refuse_missing_rows(base, correction, written)
    units = []
    for number, (_, segments) in enumerate(groups):
        stored = [name for name in segments if name not in correction.new and not name.startswith(SHARED)]
        replaced = {name: base.offline.files_of(name) for name in stored}
        units.append(Unit(number, (), replaced, tuple(written[name] for name in segments if name in written)))
    return units


def written_segments(folder: Path, names: Iterable[str], new: frozenset[str]) -> dict[str, WrittenSegment]:
    """The staged segments by name, with rows and times from the files' metadata. Segments without a file are absent.

    `names` are all that may be there. DataError for the folder of another one.
    """
    import pyarrow.parquet as pq

    name_of = {segment_folder(name): name for name in names}
    files_of: dict[str, list[tuple[str, int, int, int | None, int | None]]] = defaultdict(list)
    for path in sorted(folder.glob(f"{columns.SEGMENT}=*/*.parquet")):
        name = name_of.get(path.parent.name)
        if name is None:
            raise DataError(f"{path.parent} holds rows of no segment of the plan. Nothing was changed.")
        metadata = pq.read_metadata(path)
        low, high = _times(metadata)
        files_of[name].append((str(path.relative_to(folder)), metadata.num_rows, path.stat().st_size, low, high))
    segments = {}
    for name, files in files_of.items():
        paths, rows, sizes, lows, highs = zip(*files, strict=True)
        low = None if None in lows else min(lows)
        high = None if None in highs else max(highs)
        segments[name] = WrittenSegment(name, sum(rows), sum(sizes), low, high, paths, name in new)
    return segments


def _refuse_missing_rows(base: Base, correction: Correction, written: Mapping[str, WrittenSegment]) -> None:
    """DataError unless each segment that loses a known number of rows has the others."""
    if base.offline.has_deletion_vectors:  # the log counts the rows of files with those that are deleted
        return
    before: dict[str, list[int]] = defaultdict(list)
    for file in base.offline.files:
        before[file.segment].append(file.rows)
    for name, lost in correction.lost_rows.items():
        if not all(before[name]):  # somebody wrote a file without its number of rows
            continue
        expected, staged = sum(before[name]) - lost, written[name].rows if name in written else 0
        if staged != expected:
            raise DataError(
                f"Segment '{name}' of '{base.spec.name}' would have {counted(expected, 'row')}, and {staged} were "
                "staged. Nothing was changed.",
                hint="Plan it again; if that does not help: hybrid doctor",
            )


def _times(metadata: object) -> tuple[int | None, int | None]:
    """The first and last TIME from the statistics of a file's row groups; None when a row group has none."""
    lows, highs = [], []
    for group in range(metadata.num_row_groups):  # type: ignore[attr-defined]
        row_group = metadata.row_group(group)  # type: ignore[attr-defined]
        chunks = [row_group.column(place) for place in range(row_group.num_columns)]
        statistics = next(chunk.statistics for chunk in chunks if chunk.path_in_schema == columns.TIME)
        if statistics is None or not statistics.has_min_max:
            return None, None
        lows.append(statistics.min)
        highs.append(statistics.max)
    return min(lows, default=None), max(highs, default=None)
