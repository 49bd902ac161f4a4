"""Replacements in several requests: opened, pushed to by jobs, then ended or reverted. A folder each beside the halves.

<table>/plans/<id>/replacement.json     what is to be replaced by what; it never changes
<table>/plans/<id>/pushes/<n>/push.json what the nth job brought
<table>/plans/<id>/pushes/<n>/rows/     its rows by segment, converted, not yet arrived
<table>/plans/<id>/closed.json          how it ended
<table>/plans/<id>/lock                 held by whoever changes it

Whether it is done does not stand here alone: the OFFLINE half's log says it, for its one commit bears the id. The mark
in `closed.json` only saves looking there, and outlives the log.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, NotFoundError
from hybrid.lake.layout import TableLayout
from hybrid.lake.lock import try_lock
from hybrid.lake.log import HalfSnapshot, lineage_acts, open_half
from hybrid.lake.staging import bytes_in
from hybrid.runtime import durable
from hybrid.table.names import segment_folder as folder_of

ROWS = "rows"
_ENTRY, _PUSH, _CLOSED, _LOCK = "replacement.json", "push.json", "closed.json", "lock"
_PUSHES = "pushes"
_PATIENCE_S = 10.0


class PushState(StrEnum):
    """How a replacement stands, in Pinot's words. COMPLETED: its commit is made, whether or not it stands."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    REVERTED = "REVERTED"


@dataclass(frozen=True)
class OpenReplacement:
    """What goes, with its data files (paths in the half) as they were when it was opened, and what comes instead.

    `created_at` is UTC ISO 8601; `notes` are whatever its author wrote down with it.
    """

    id: str
    table: str
    created_at: str
    segments_from: Mapping[str, tuple[str, ...]]
    segments_to: tuple[str, ...]
    notes: Mapping[str, str]
    user: str | None = None

    @property
    def reason(self) -> str | None:
        """The notes as one line; None without any."""
        return ", ".join(f"{key}={value}" for key, value in self.notes.items()) or None


@dataclass(frozen=True)
class PushedSegment:
    """A segment that waits: rows, delete markers, first and last time in epoch ms."""

    name: str
    rows: int
    deletes: int
    low: int | None
    high: int | None

    @property
    def is_empty(self) -> bool:
        """Whether it has no file."""
        return not (self.rows or self.deletes)


@dataclass(frozen=True)
class Push:
    """What one job brought: `columns` are the user's with their Spark types, `checks` the results of expectations.

    `number` counts the pushes to a replacement: of one segment the last one counts.
    """

    number: int
    source: str
    columns: tuple[tuple[str, str], ...]
    segments: tuple[PushedSegment, ...]
    inputs: tuple[Mapping[str, object], ...] = ()
    checks: tuple[Mapping[str, object], ...] = ()


def publish(layout: TableLayout, entry: OpenReplacement) -> None:
    """Opens a replacement. It is there by one rename."""
    folder = layout.plan(entry.id)
    durable.make_folder(folder.parent)
    folder.mkdir()
    durable.sync(folder.parent)
    _write(folder / _ENTRY, vars(entry))


def find_replacement(layout: TableLayout, entry_id: str) -> OpenReplacement | None:
    """The replacement of that id that was opened; None when none was."""
    known = {path.parent.name: path for path in layout.plans.glob(f"*/{_ENTRY}")}  # an id is no path
    return _entry(known[entry_id]) if entry_id in known else None


def known_replacement(layout: TableLayout, entry_id: str) -> OpenReplacement:
    """The replacement of that id that was opened; NotFoundError, with a suggestion, when none was."""
    found = find_replacement(layout, entry_id)
    if found is None:
        raise NotFoundError.named("Segment lineage entry", entry_id, [entry.id for entry in open_replacements(layout)])
    return found


def open_replacements(layout: TableLayout) -> list[OpenReplacement]:
    """Every replacement that was opened, however it ended; oldest first."""
    found = [_entry(path) for path in layout.plans.glob(f"*/{_ENTRY}")]
    return sorted(found, key=lambda entry: (entry.created_at, entry.id))


def in_progress(layout: TableLayout) -> list[OpenReplacement]:
    """Those that have not ended, oldest first."""
    return [entry for entry in open_replacements(layout) if state_of(layout, entry.id) is PushState.IN_PROGRESS]


def state_of(layout: TableLayout, entry_id: str) -> PushState:
    """How a replacement stands."""
    with suppress(FileNotFoundError):
        return PushState(json.loads((layout.plan(entry_id) / _CLOSED).read_text(encoding="utf-8"))["state"])
    done = is_committed(open_half(layout.half(Half.OFFLINE)), entry_id)
    return PushState.COMPLETED if done else PushState.IN_PROGRESS


def is_committed(half: HalfSnapshot, entry_id: str) -> bool:
    """Whether the commit of a replacement is in the log up to this version of OFFLINE."""
    return any(act.id == entry_id for _, act in lineage_acts(half))


@contextmanager
def changing(layout: TableLayout, entry_id: str) -> Iterator[None]:
    """Held by whoever pushes to a replacement, ends or reverts it. ConflictError when somebody does for long."""
    with _held(layout.plan(entry_id) / _LOCK, f"Replacement '{entry_id}' is being changed by another request."):
        yield


@contextmanager
def opening(layout: TableLayout) -> Iterator[None]:
    """Held by whoever opens a replacement of a table, so that no two of the same segments are opened."""
    durable.make_folder(layout.plans)
    with _held(layout.plans / f".{_LOCK}", "Another replacement of the table is being opened."):
        yield


def next_number(layout: TableLayout, entry_id: str) -> int:
    """The number of the next push."""
    return max((push.number for push in _pushes(layout, entry_id)), default=0) + 1


def add_push(layout: TableLayout, entry_id: str, staged: Path, push: Push) -> None:
    """Makes a push of the folder that its rows were staged in. Call it under `changing`."""
    _write(staged / _PUSH, {**vars(push), "segments": [vars(one) for one in push.segments]})
    place = _folder(layout, entry_id, push.number)
    durable.make_folder(place.parent)
    durable.sync_tree(staged)
    durable.rename(staged, place)


def pushed(layout: TableLayout, entry_id: str) -> dict[str, tuple[Push, PushedSegment]]:
    """Every segment that waits, by its name, with the push that brought it last."""
    return {one.name: (push, one) for push in _pushes(layout, entry_id) for one in push.segments}


def segment_folder(layout: TableLayout, entry_id: str, push: Push, segment: str) -> Path:
    """Where the rows of a pushed segment lie."""
    return rows_folder(layout, entry_id, push) / folder_of(segment)


def rows_folder(layout: TableLayout, entry_id: str, push: Push) -> Path:
    """Where the rows of a push lie."""
    return _folder(layout, entry_id, push.number) / ROWS


def staged_bytes(layout: TableLayout, entry_id: str) -> int:
    """What all that was pushed takes on disk, with pushes that a later one of the same segment stands for."""
    return bytes_in(layout.plan(entry_id) / _PUSHES)


def left_behind(layout: TableLayout) -> list[tuple[OpenReplacement, PushState]]:
    """Those that have ended and still have staged rows: whoever closed them died before these were removed."""
    kept = [entry for entry in open_replacements(layout) if (layout.plan(entry.id) / _PUSHES).exists()]
    states = [(entry, state_of(layout, entry.id)) for entry in kept]
    return [(entry, state) for entry, state in states if state is not PushState.IN_PROGRESS]


def remove_left(layout: TableLayout, entry_id: str, state: PushState) -> None:
    """Removes what `left_behind` has found of a replacement that has ended."""
    with changing(layout, entry_id):
        close(layout, entry_id, state)


def close(layout: TableLayout, entry_id: str, state: PushState) -> None:
    """Notes how a replacement ended and removes the rows that waited. Call it under `changing`."""
    _write(layout.plan(entry_id) / _CLOSED, {"state": state})
    shutil.rmtree(layout.plan(entry_id) / _PUSHES, ignore_errors=True)
    durable.sync(layout.plan(entry_id))


@contextmanager
def _held(path: Path, taken: str) -> Iterator[None]:
    with path.open("a") as file:
        if not try_lock(file, _PATIENCE_S):
            raise ConflictError(f"{taken} Nothing was changed.", hint="Ask again when it is done.")
        yield


def _folder(layout: TableLayout, entry_id: str, number: int) -> Path:
    return layout.plan(entry_id) / _PUSHES / str(number)


def _pushes(layout: TableLayout, entry_id: str) -> Sequence[Push]:
    """Oldest first."""
    paths = (layout.plan(entry_id) / _PUSHES).glob(f"*/{_PUSH}")
    return sorted((_push(path) for path in paths), key=lambda push: push.number)


def _push(path: Path) -> Push:
    doc = json.loads(path.read_text(encoding="utf-8"))
    segments = tuple(PushedSegment(**one) for one in doc.pop("segments"))
    columns = tuple((name, kind) for name, kind in doc.pop("columns"))
    lists = {"inputs": tuple(doc["inputs"]), "checks": tuple(doc["checks"])}
    return Push(**{**doc, **lists}, segments=segments, columns=columns)


def _entry(path: Path) -> OpenReplacement:
    doc = json.loads(path.read_text(encoding="utf-8"))
    files = {name: tuple(paths) for name, paths in doc["segments_from"].items()}
    return OpenReplacement(**{**doc, "segments_from": files, "segments_to": tuple(doc["segments_to"])})


def _write(path: Path, doc: Mapping[str, object]) -> None:
    durable.write_text(path, json.dumps(doc, default=str))
