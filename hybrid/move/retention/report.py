"""What a run of retention did, or why it did nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hybrid.config.table_config import Half
from hybrid.progress import counted
from hybrid.runtime.json_values import utc


@dataclass(frozen=True)
class Dropped:
    """Segments of a half that went, with the rows that went with them; `markers` delete markers stay in their place.

    `before_ms` is the time that all their rows lie before; `version` is None in a dry run.
    """

    half: Half
    segments: tuple[str, ...]
    rows: int
    bytes: int
    markers: int
    before_ms: int
    version: int | None

    def words(self) -> str:
        """For the sentence."""
        what = f"{counted(len(self.segments), 'segment')} of {self.half} with {counted(self.rows, 'row')}"
        return f"{what} from before {utc(self.before_ms)}"


@dataclass(frozen=True)
class KeptSegments:
    """Expired segments of a half that stay, and why."""

    half: Half
    segments: tuple[str, ...]
    why: str

    def words(self) -> str:
        """For the sentence."""
        verb = "is" if len(self.segments) == 1 else "are"
        return f"{counted(len(self.segments), 'segment')} of {self.half} {verb} kept: {self.why}"


@dataclass(frozen=True)
class RetentionReport:
    """What went (`segments` and `rows` by half), what stays of it, and the floor (epoch ms) that the boundary has.

    `floor_ms` is None where no boundary needs one; `versions` are those of the commits, by half.
    """

    segments: Mapping[str, Sequence[str]]
    rows: Mapping[str, int]
    bytes: int
    markers: int
    kept: tuple[KeptSegments, ...]
    floor_ms: int | None
    versions: Mapping[str, int]
    sentence: str
    dry_run: bool = False

    @property
    def committed(self) -> bool:
        """Whether something was committed."""
        return bool(self.versions)


@dataclass
class RetentionFindings:
    """What a run has done so far. `nothing` says of each half why nothing of it is expired."""

    dropped: list[Dropped] = field(default_factory=list)
    kept: list[KeptSegments] = field(default_factory=list)
    nothing: dict[Half, str] = field(default_factory=dict)
    floor_ms: int | None = None
    floor_version: int | None = None

    def report(self, table: str, *, dry_run: bool) -> RetentionReport:
        """The report of a run that has ended."""
        versions = {one.half.value: one.version for one in self.dropped if one.version is not None}
        if self.floor_version is not None:
            versions.setdefault(Half.OFFLINE.value, self.floor_version)
        for found in (self.dropped, self.kept):
            found.sort(key=lambda one: one.half is Half.REALTIME)  # OFFLINE first, as everywhere
        segments: dict[str, tuple[str, ...]] = {}
        rows: dict[str, int] = {}
        for one in self.dropped:
            segments[one.half.value] = (*segments.get(one.half.value, ()), *one.segments)
            rows[one.half.value] = rows.get(one.half.value, 0) + one.rows
        return RetentionReport(
            segments,
            rows,
            sum(one.bytes for one in self.dropped),
            sum(one.markers for one in self.dropped),
            tuple(self.kept),
            self.floor_ms,
            versions,
            self._sentence(table, dry_run),
            dry_run,
        )

    def _sentence(self, table: str, dry_run: bool) -> str:
        kept = "; ".join(one.words() for one in self.kept)
        if not self.dropped:
            why = "; ".join([*([kept] if kept else []), *(self.nothing[half] for half in sorted(self.nothing))])
            return f"Nothing to drop in '{table}': {why}."
        verb = "Would drop" if dry_run else "Dropped"
        parts = [f"{verb} {' and '.join(one.words() for one in self.dropped)} of '{table}'"]
        markers = sum(one.markers for one in self.dropped)
        if markers:
            parts.append(f"{counted(markers, 'delete marker')} of keys with older versions stay in their place")
        return f"{'; '.join([*parts, *([kept] if kept else [])])}."
