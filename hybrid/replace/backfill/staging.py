"""Writes the segments of a correction beside the halves, in a half's layout, and describes them."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

from hybrid.config.table_config import Half
from hybrid.lake.layout import in_files, physical_columns, quoted
from hybrid.lake.staged_frames import stage_segments
from hybrid.progress import counted
from hybrid.replace.backfill.base import Base
from hybrid.replace.backfill.correction import SHARED, Correction
from hybrid.table import columns
from hybrid.table.plans import Unit, WrittenSegment

_SEGMENT_DIR = f"{columns.SEGMENT}="


def stage_units(base: Base, correction: Correction, folder: Path) -> list[Unit]:
    """Writes the touched segments as they will be, each in a folder of its name. Returns their units.

    The units do not have their buckets' positions yet.
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
    written = _written(base, folder, correction.new)
    units = []
    for number, (_, segments) in enumerate(groups):
        stored = [name for name in segments if name not in correction.new and not name.startswith(SHARED)]
        replaced = {name: base.offline.files_of(name) for name in stored}
        units.append(Unit(number, (), replaced, tuple(written[name] for name in segments if name in written)))
    return units


def _written(base: Base, folder: Path, new: frozenset[str]) -> dict[str, WrittenSegment]:
    """The staged segments by name, with rows and times from the files' metadata. Segments without a file are absent."""
    import pyarrow.parquet as pq

    files_of: dict[str, list[tuple[str, int, int, int | None, int | None]]] = defaultdict(list)
    for path in sorted(folder.glob(f"{_SEGMENT_DIR}*/*.parquet")):
        metadata = pq.read_metadata(path)
        low, high = _times(metadata)
        name = path.parent.name.removeprefix(_SEGMENT_DIR)
        files_of[name].append((str(path.relative_to(folder)), metadata.num_rows, path.stat().st_size, low, high))
    segments = {}
    for name, files in files_of.items():
        paths, rows, sizes, lows, highs = zip(*files, strict=True)
        low = None if None in lows else min(lows)
        high = None if None in highs else max(highs)
        segments[name] = WrittenSegment(name, sum(rows), sum(sizes), low, high, paths, name in new)
    return segments


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
