"""The result of a run of retention, or why it did nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hybrid.config.table_config import Half
from hybrid.progress import counted
from hybrid.runtime.json_values import utc
from hybrid.runtime.sentence_repr import shown_as_sentence


@dataclass(frozen=True)
class Dropped:
    """Dropped segments of a half, with the number of dropped rows; `markers` delete markers stay in their place.

    All rows are older than `before_ms`; `version` is None in a dry run.
    """

    half: Half
    segments: tuple[str, ...]
    rows: int
    bytes: int
    markers: int
    before_ms: int
    version: int | None

    def words(self) -> str:
        """Words for the sentence."""
        what = f"{counted(len(self.segments), 'segment')} of {self.half} with {counted(self.rows, 'row')}"
        return f"{what} from before {utc(self.before_ms)}"


@dataclass(frozen=True)
class KeptSegments:
    """Expired segments of a half that are kept, and why."""

    half: Half
    segments: tuple[str, ...]
    why: str

    def words(self) -> str:
        """Words for the sentence."""
        verb = "is" if len(self.segments) == 1 else "are"
        return f"{counted(len(self.segments), 'segment')} of {self.half} {verb} kept: {self.why}"


@shown_as_sentence
@dataclass(frozen=True)
class RetentionReport:
    """What was dropped (`segments` and `rows` by half), what was kept, and the boundary's floor (epoch ms).

    `floor_ms` is None when no boundary needs one; `versions` are those of the commits, by half.
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

    @property
    def did_something(self) -> bool:
        """Whether something was committed."""
        return self.committed


@dataclass
class RetentionFindings:
    """The results of a run so far. `nothing` says for each half why nothing is expired."""

    dropped: list[Dropped] = field(default_factory=list)
    kept: list[KeptSegments] = field(default_factory=list)
    nothing: dict[Half, str] = field(default_factory=dict)
    floor_ms: int | None = None
    floor_version: int | None = None

    def report(self, table: str, *, dry_run: bool) -> RetentionReport:
        """The report of a finished run."""
        versions = {entry.half.value: entry.version for entry in self.dropped if entry.version is not None}
        if self.floor_version is not None:
            versions.setdefault(Half.OFFLINE.value, self.floor_version)
        for entries in (self.dropped, self.kept):
            entries.sort(key=lambda entry: entry.half is Half.REALTIME)  # OFFLINE first, as everywhere
        segments: dict[str, tuple[str, ...]] = {}
        rows: dict[str, int] = {}
        for entry in self.dropped:
            segments[entry.half.value] = (*segments.get(entry.half.value, ()), *entry.segments)
            rows[entry.half.value] = rows.get(entry.half.value, 0) + entry.rows
        return RetentionReport(
            segments,
            rows,
            sum(entry.bytes for entry in self.dropped),
            sum(entry.markers for entry in self.dropped),
            tuple(self.kept),
            self.floor_ms,
            versions,
            self._sentence(table, dry_run),
            dry_run,
        )

    def _sentence(self, table: str, dry_run: bool) -> str:
        kept_words = "; ".join(entry.words() for entry in self.kept)
        if not self.dropped:
            why = "; ".join(
                [*([kept_words] if kept_words else []), *(self.nothing[half] for half in sorted(self.nothing))]
            )
            return f"Nothing to drop in '{table}': {why}."
        verb = "Would drop" if dry_run else "Dropped"
        parts = [f"{verb} {' and '.join(entry.words() for entry in self.dropped)} of '{table}'"]
        markers = sum(entry.markers for entry in self.dropped)
        if markers:
            parts.append(f"{counted(markers, 'delete marker')} of keys with older versions stay in their place")
        return f"{'; '.join([*parts, *([kept_words] if kept_words else [])])}."
