"""The record of a purge: what it removed, place by place, and the result of the second reading."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hybrid.lake.layout import TableLayout
from hybrid.progress import counted
from hybrid.runtime import durable
from hybrid.runtime.sentence_repr import shown_as_sentence


@dataclass(frozen=True)
class RemovedFile:
    """A data file that was deleted: its path below the table's folder, its rows and how many of them matched."""

    place: str
    path: str
    bytes: int
    rows: int
    matching: int


@dataclass(frozen=True)
class StoreReading:
    """What a purge read and removed on a store: the objects of the table in its last list, compared with the mirror's.

    `brought` counts objects that the mirror lacked or had otherwise, `deleted` those of the table's halves.
    `versioning` is the bucket's, empty for one that never kept versions. `versions_deleted` counts older versions,
    `uploads_aborted` uploads that had not ended.
    """

    url: str
    objects: int
    bytes: int
    brought: int
    deleted: int
    versioning: str
    versions_deleted: int
    uploads_aborted: int


@dataclass(frozen=True)
class PurgeReading:
    """A reading of a place. Of `matching` rows of current versions, queries show `shown`.

    `markers` counts delete markers that stay.
    """

    place: str
    current: bool
    files: int
    rows: int
    matching: int
    shown: int = 0
    markers: int = 0


@shown_as_sentence
@dataclass(frozen=True)
class PurgeReport:
    """The result of a purge. `rows` were removed from current versions, `files` deleted.

    `before` and `after` are the two readings. The condition is not kept, for it names what must be forgotten.
    `columns` are the columns that it reads, `condition_sha256` is its digest. `undecided` counts rejected messages
    that stay because it cannot be decided whether they match. `samples` counts plans that lost their samples. `staged`
    counts the matching rows that plans and open replacements have staged. `messages` are the offsets of matching
    messages, if they were asked for.
    `remembered` are files of the logs that still hold a value of a deleted file. `outside` says what a purge does not
    reach. `store` is what was read and removed on the store of a warehouse that is on one.
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
    staged: Mapping[str, int]
    messages: tuple[Mapping[str, Any], ...]
    remembered: tuple[str, ...]
    outside: tuple[str, ...]
    sentence: str
    store: StoreReading | None = None

    @property
    def committed(self) -> bool:
        """Whether anything was removed."""
        return not self.dry_run and bool(self.files or any(self.rows.values()) or self.samples)

    @property
    def did_something(self) -> bool:
        """Whether anything was removed."""
        return self.committed

    def to_json(self) -> dict[str, Any]:
        """The record in its stored and printed form."""
        return asdict(self)


def keep(layout: TableLayout, report: PurgeReport) -> None:
    """Writes the record beside the halves, atomically by a rename."""
    durable.write_text(layout.purges / f"{report.id}.json", json.dumps(report.to_json(), indent=1))


def purge_records(layout: TableLayout) -> list[dict[str, Any]]:
    """The records of all purges of a table, newest first."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in layout.purges.glob("*.json")]
    return sorted(records, key=lambda record: str(record["created_at"]), reverse=True)


def sentence_of(table: str, rows: Mapping[str, int], files: int, after: tuple[PurgeReading, ...]) -> str:
    """What a purge did, with its numbers."""
    read = counted(sum(place.files for place in after), "file")
    checked = counted(sum(place.rows for place in after), "row")
    shown = sum(place.shown for place in after)
    arrived = f" {counted(shown, 'row')} that match are shown: they have arrived since." if shown else ""
    markers = sum(place.markers for place in after)
    if markers:
        why = "older versions of their keys may be left or still come"
        arrived += f" {counted(markers, 'delete marker')} that match stay: {why}."
    if not files and not any(rows.values()):
        return f"Nothing of '{table}' is to be removed: {checked} in {read} were read.{arrived}"
    went = ", ".join(f"{counted(count, 'row')} of {half}" for half, count in rows.items() if count)
    what = " and ".join(part for part in (went, counted(files, "old file") if files else "") if part)
    rest = "no other row that matches" if shown or markers else "no row that matches"
    return f"Removed {what} of '{table}'. Read again: {rest} is left in {checked} of {read}.{arrived}"


def store_words(store: StoreReading) -> str:
    """What a purge read and removed on the store, as a sentence."""
    deeds = [f"{counted(store.deleted, 'object')} {'was' if store.deleted == 1 else 'were'} deleted"]
    if store.versions_deleted:
        deeds.append(f"{counted(store.versions_deleted, 'older version')} of objects")
    if store.uploads_aborted:
        deeds.append(f"parts of {counted(store.uploads_aborted, 'upload')}")
    return f" On {store.url} {', '.join(deeds)}; {counted(store.objects, 'object')} were compared with what was read."


def incomplete(table: str, left: str) -> str:
    """The sentence of an incomplete purge."""
    return f"The purge of '{table}' is not complete: {left} is left."


def incomplete_for(table: str, error: Exception) -> str:
    """The sentence of a purge that an error has ended. The error names no value."""
    return f"The purge of '{table}' is not complete: {error} Run it again: it does the rest."
