"""One reading of every place: the rows, the matching rows, and which of these are removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.config.table_config import Half
from hybrid.errors import DataError
from hybrid.lake.log import HalfSnapshot
from hybrid.replace.purge.hidden import Hidden, HiddenSegment
from hybrid.replace.purge.log_statistics import remembered
from hybrid.replace.purge.places import STAGED, Place, halves_of, is_rejected, places
from hybrid.replace.purge.rejected import condemned
from hybrid.replace.purge.report import PurgeReading
from hybrid.replace.purge.request import PurgeScope
from hybrid.replace.purge.scan import MatchingRows, messages_of, read_files, scan, whole_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Survey:
    """The result of a reading: `segments` of current versions with matching rows, and `found`, their files.

    `found` also holds old and staged files with matching rows, and torn files. `undecided` counts rejected messages
    for which the match cannot be decided. `remembered` are files of the logs with values of deleted files. `messages`
    are the offsets of matching messages, where they were asked for. `on_store` is what the warehouse's store has beside
    what was read, and must be removed, as phrases.
    """

    halves: Mapping[Half, HalfSnapshot]
    hidden: Hidden
    segments: tuple[HiddenSegment, ...]
    readings: tuple[PurgeReading, ...]
    found: tuple[tuple[Place, MatchingRows], ...]
    undecided: int
    remembered: tuple[str, ...]
    messages: tuple[dict[str, Any], ...] = ()
    on_store: tuple[str, ...] = ()

    @property
    def going(self) -> list[HiddenSegment]:
        """Segments of current versions with rows to remove."""
        return [segment for segment in self.segments if segment.goes]

    @property
    def shown(self) -> list[HiddenSegment]:
        """Segments of current versions with matching rows that queries show."""
        return [segment for segment in self.segments if segment.shown]

    @property
    def dead(self) -> list[MatchingRows]:
        """Files of no current version of a half with matching rows."""
        return [file for place, file in self.found if not place.current and place.name != STAGED and file.matching]

    @property
    def staged(self) -> list[MatchingRows]:
        """Files with matching rows that plans and open replacements have staged."""
        return [file for place, file in self.found if place.name == STAGED and file.matching]

    @property
    def torn(self) -> list[str]:
        """Unreadable files: they are being written, or were left by a process that was killed just now."""
        return [f"file {file.path.name}, which is not whole" for _, file in self.found if file.torn]

    @property
    def is_clean(self) -> bool:
        """Whether nothing remains that must be removed, or that cannot be read."""
        return not (self.going or self.dead or self.torn or self.remembered or self.on_store)


def survey(scene: PurgeScope, number: int) -> Survey:
    """Reads every place; `number` distinguishes this reading from others of the same purge."""
    halves = halves_of(scene.table.spec, scene.table.layout)
    where = places(scene.table.layout, halves.items())
    whole, torn = whole_files(path for place in where for path in place.files)
    _require_current(where, whole)
    raws, undecided = _raws(scene, where, whole, number)
    by_path = {
        match.path: match
        for match in [*scan(scene, whole, raws), *(MatchingRows(path, 0, 0, torn=True) for path in torn)]
    }
    matches = [(place, by_path[path]) for place in where for path in place.files if path in by_path]
    hits = tuple((place, match) for place, match in matches if match.matching or match.torn)
    hidden = Hidden(scene, halves, raws, scene.folder / f"winners-{number}")
    segments = tuple(hidden.segments(_segments(halves, hits)))
    readings = tuple(_reading(place, [match for at, match in matches if at is place], segments) for place in where)
    remembering = tuple(f"{half.value}/{name}" for half, snapshot in halves.items() for name in remembered(snapshot))
    found = [match.path for place, match in hits if place.name != STAGED and match.matching]
    messages = messages_of(scene, found, raws) if scene.asked.locates else ()
    return Survey(halves, hidden, segments, readings, hits, undecided, remembering, tuple(messages))


def _segments(
    halves: Mapping[Half, HalfSnapshot], hits: Sequence[tuple[Place, MatchingRows]]
) -> dict[Half, tuple[str, ...]]:
    """The segments of current versions with matching rows."""
    matching = {match.path for place, match in hits if place.current and match.matching}
    return {
        half: tuple(dict.fromkeys(file.segment for file in snapshot.files if Path(file.path) in matching))
        for half, snapshot in halves.items()
    }


def _reading(place: Place, found: Sequence[MatchingRows], segments: Sequence[HiddenSegment]) -> PurgeReading:
    mine = [segment for segment in segments if place.current and segment.half.value == place.name]
    shown, markers = sum(segment.shown for segment in mine), sum(segment.markers for segment in mine)
    rows, matching = sum(file.rows for file in found), sum(file.matching for file in found)
    return PurgeReading(place.name, place.current, len(found), rows, matching, shown, markers)


def _require_current(where: Sequence[Place], whole: Sequence[Path]) -> None:
    """DataError when a file of a current version is missing: nothing could be said of its rows."""
    readable = set(whole)
    for place in where:
        lost = [path for path in place.files if place.current and path not in readable and not path.exists()]
        if lost:
            raise DataError(
                f"{lost[0]}: the newest version of {place.name} has this data file, and it is not there. Nothing was "
                "changed.",
                hint="hybrid doctor tells what is missing; put it back from a copy first.",
            )


def _raws(
    scene: PurgeScope, where: Sequence[Place], whole: Sequence[Path], number: int
) -> tuple[DataFrame | None, int]:
    """Staged digests of the rejected messages to remove, of old versions too (None without any); the undecided ones."""
    from pyspark.sql import functions as F

    halves, readable = [place for place in where if place.name != STAGED], set(whole)
    files = [
        path for place in halves for path in place.files if path in readable and is_rejected(scene.table.spec, path)
    ]
    if not files:
        return None, 0
    path = str(scene.folder / f"rejected-{number}")
    condemned(scene, read_files(scene, files)).write.parquet(path)
    decided = scene.table.bench.spark.read.schema("raw string, goes boolean, undecided boolean").parquet(path)
    goes, undecided = decided.agg(F.count_if("goes"), F.count_if("undecided")).collect()[0]
    return decided.where("goes").select("raw") if goes else None, undecided
