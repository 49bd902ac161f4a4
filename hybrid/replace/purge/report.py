"""What a purge did, place by place, and what a second reading found: the record that is kept of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hybrid.lake.layout import TableLayout
from hybrid.progress import counted
from hybrid.runtime import durable


@dataclass(frozen=True)
class RemovedFile:
    """A data file that was deleted: its path below the table's folder, its rows and how many of them matched."""

    place: str
    path: str
    bytes: int
    rows: int
    matching: int


@dataclass(frozen=True)
class PurgeReading:
    """A reading of a place. Of `matching` rows of current versions queries show `shown`, and `markers` are delete
    markers that stay.
    """

    place: str
    current: bool
    files: int
    rows: int
    matching: int
    shown: int = 0
    markers: int = 0


@dataclass(frozen=True)
class PurgeReport:
    """`rows` went from current versions, `files` were deleted. `before` and `after` are the two readings.

    The condition is not kept, for it names what was to be forgotten: `columns` are those it reads, `condition_sha256`
    is its digest. `undecided` counts rejected messages that stay because nobody can tell whether they match; `samples`
    plans that lost theirs. `remembered` are files of the logs that still tell a value of a file that is gone. `outside`
    says what a purge does not reach.
    """

    id: str
    table: str
    created_at: str
    columns: tuple[str, ...]
    condition_sha256: str
    reason: str | None
    user: str | None
    dry_run: bool
    rows: Mapping[str, int]
    files: tuple[RemovedFile, ...]
    before: tuple[PurgeReading, ...]
    after: tuple[PurgeReading, ...]
    undecided: int
    samples: int
    remembered: tuple[str, ...]
    outside: tuple[str, ...]
    sentence: str

    @property
    def committed(self) -> bool:
        """Whether anything was removed."""
        return not self.dry_run and bool(self.files or any(self.rows.values()) or self.samples)

    def to_json(self) -> dict[str, Any]:
        """As it is kept and printed."""
        return asdict(self)


def keep(layout: TableLayout, report: PurgeReport) -> None:
    """Writes the record down beside the halves. It is there by one rename."""
    durable.write_text(layout.purges / f"{report.id}.json", json.dumps(report.to_json(), indent=1))


def purge_records(layout: TableLayout) -> list[dict[str, Any]]:
    """The records of all purges of a table, newest first."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in layout.purges.glob("*.json")]
    return sorted(found, key=lambda one: str(one["created_at"]), reverse=True)


def sentence_of(table: str, rows: Mapping[str, int], files: int, after: tuple[PurgeReading, ...]) -> str:
    """What a purge did, with its numbers."""
    read = counted(sum(one.files for one in after), "file")
    checked = counted(sum(one.rows for one in after), "row")
    shown = sum(one.shown for one in after)
    arrived = f" {counted(shown, 'row')} that match are shown: they have arrived since." if shown else ""
    markers = sum(one.markers for one in after)
    if markers:
        why = "older versions of their keys may be left or still come"
        arrived += f" {counted(markers, 'delete marker')} that match stay: {why}."
    if not files and not any(rows.values()):
        return f"Nothing of '{table}' is to be removed: {checked} in {read} were read.{arrived}"
    went = ", ".join(f"{counted(count, 'row')} of {half}" for half, count in rows.items() if count)
    what = " and ".join(one for one in (went, counted(files, "old file") if files else "") if one)
    left = "no other row that matches" if shown or markers else "no row that matches"
    return f"Removed {what} of '{table}'. Read again: {left} is left in {checked} of {read}.{arrived}"


def incomplete(table: str, left: str) -> str:
    """What a purge did that could not be ended."""
    return f"The purge of '{table}' is not complete: {left} is left."
