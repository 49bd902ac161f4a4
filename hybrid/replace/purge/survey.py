"""One reading of every place: what there is, what matches, and what of it goes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import DataError
from hybrid.lake.log import HalfSnapshot
from hybrid.replace.purge.hidden import Hidden, HiddenSegment
from hybrid.replace.purge.log_statistics import remembered
from hybrid.replace.purge.places import STAGED, Place, halves_of, is_rejected, places
from hybrid.replace.purge.rejected import condemned
from hybrid.replace.purge.report import PurgeReading
from hybrid.replace.purge.request import PurgeScope
from hybrid.replace.purge.scan import MatchingRows, read_files, scan, whole_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Survey:
    """`segments` are those of current versions with rows that match, `found` the files with such rows, or torn.

    `undecided` counts rejected messages of which cannot be told whether they match; `remembered` are files of the logs
    that tell values of files that are gone.
    """

    halves: Mapping[Half, HalfSnapshot]
    hidden: Hidden
    segments: tuple[HiddenSegment, ...]
    readings: tuple[PurgeReading, ...]
    found: tuple[tuple[Place, MatchingRows], ...]
    undecided: int
    remembered: tuple[str, ...]

    @property
    def going(self) -> list[HiddenSegment]:
        """Segments of current versions with rows that go."""
        return [one for one in self.segments if one.goes]

    @property
    def shown(self) -> list[HiddenSegment]:
        """Segments of current versions with rows that match and that queries show."""
        return [one for one in self.segments if one.shown]

    @property
    def dead(self) -> list[MatchingRows]:
        """Files of no current version of a half that hold rows that match."""
        return [one for place, one in self.found if not place.current and place.name != STAGED and one.matching]

    @property
    def staged(self) -> list[MatchingRows]:
        """Files that plans and open replacements have staged with rows that match."""
        return [one for place, one in self.found if place.name == STAGED and one.matching]

    @property
    def torn(self) -> list[str]:
        """The files that cannot be read: they are being written, or were left by an act that was killed just now."""
        return [f"file {one.path.name}, which is not whole" for _, one in self.found if one.torn]

    @property
    def is_clean(self) -> bool:
        """Whether nothing is left that has to go, or that cannot be read."""
        return not (self.going or self.dead or self.torn or self.remembered)


def survey(scene: PurgeScope, number: int) -> Survey:
    """Reads every place; `number` tells this reading from others of the same purge."""
    halves = halves_of(scene.spec, scene.layout)
    where = places(scene.layout, halves.items())
    whole, torn = whole_files(path for place in where for path in place.files)
    _require_current(where, whole)
    raws, undecided = _raws(scene, where, whole, number)
    by_path = {
        one.path: one for one in [*scan(scene, whole, raws), *(MatchingRows(path, 0, 0, torn=True) for path in torn)]
    }
    found = [(place, by_path[path]) for place in where for path in place.files if path in by_path]
    hits = tuple((place, one) for place, one in found if one.matching or one.torn)
    hidden = Hidden(scene, halves, raws, scene.folder / f"winners-{number}")
    segments = tuple(hidden.segments(_segments(halves, hits)))
    readings = tuple(_reading(place, [one for at, one in found if at is place], segments) for place in where)
    told = tuple(f"{half.value}/{name}" for half, snapshot in halves.items() for name in remembered(snapshot))
    return Survey(halves, hidden, segments, readings, hits, undecided, told)


def _segments(
    halves: Mapping[Half, HalfSnapshot], hits: Sequence[tuple[Place, MatchingRows]]
) -> dict[Half, tuple[str, ...]]:
    """The segments of current versions with rows that match."""
    matching = {one.path for place, one in hits if place.current and one.matching}
    return {
        half: tuple(dict.fromkeys(file.segment for file in snapshot.files if Path(file.path) in matching))
        for half, snapshot in halves.items()
    }


def _reading(place: Place, found: Sequence[MatchingRows], segments: Sequence[HiddenSegment]) -> PurgeReading:
    mine = [one for one in segments if place.current and one.half.value == place.name]
    shown, markers = sum(one.shown for one in mine), sum(one.markers for one in mine)
    rows, matching = sum(one.rows for one in found), sum(one.matching for one in found)
    return PurgeReading(place.name, place.current, len(found), rows, matching, shown, markers)


def _require_current(where: Sequence[Place], whole: Sequence[Path]) -> None:
    """DataError where a file of a current version cannot be read: nothing could be said of its rows."""
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
    """Digests of the rejected messages that go, of old versions too, staged; and how many cannot be told."""
    halves, readable = [place for place in where if place.name != STAGED], set(whole)
    files = [path for place in halves for path in place.files if path in readable and is_rejected(scene.spec, path)]
    if not files:
        return None, 0
    path = str(scene.folder / f"rejected-{number}")
    condemned(scene, read_files(scene, files)).write.parquet(path)
    decided = scene.bench.spark.read.schema("raw string, goes boolean, undecided boolean").parquet(path)
    return decided.where("goes").select("raw"), decided.where("undecided").count()
