"""Storage of replacements in several requests: opened, pushed to by jobs, then ended or reverted. A folder each.

<table>/plans/<id>/replacement.json     the replaced and the new segments; it never changes
<table>/plans/<id>/pushes/<n>/push.json the description of the nth job's push
<table>/plans/<id>/pushes/<n>/rows/     its rows by segment, converted, not yet committed
<table>/plans/<id>/closed.json          how it ended
<table>/plans/<id>/lock                 held by whoever changes it

The OFFLINE half's log decides whether a replacement is done: its one commit bears the id. The mark in `closed.json`
only saves a look at the log, and outlives the log. A warehouse on a store has all of it but the locks: see
hybrid.lake.plan_store.
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
from hybrid.errors import ConflictError, DataError, NotFoundError
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot, lineage_acts, open_half
from hybrid.lake.plan_store import publish_plans, remove_staged, require_writable
from hybrid.lake.staging import bytes_in
from hybrid.progress import counted
from hybrid.runtime import durable
from hybrid.runtime.file_lock import try_lock
from hybrid.runtime.sentence_repr import shown_as
from hybrid.store.plan_files import CLOSED_FILE, PUSH_FILE, PUSHES, REPLACEMENT_FILE, ROWS
from hybrid.table.names import segment_folder as folder_of

_LOCK = "lock"
_PATIENCE_S = 10.0


class PushState(StrEnum):
    """The state of a replacement, in Pinot's words. COMPLETED: its commit was made; it may be reverted."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETED = "COMPLETED"
    REVERTED = "REVERTED"


@shown_as("{0.id} of {0.table}")
@dataclass(frozen=True)
class OpenReplacement:
    """The segments to replace, with their data files (paths in the half) at the time of opening, and the new segments.

    `created_at` is UTC ISO 8601. `notes` are its author's free notes.
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
    """A segment that is not committed yet: rows, delete markers, first and last time in epoch ms."""

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
    """The rows of one job: `columns` are the user's with their Spark types, `checks` the results of expectations.

    `number` counts the pushes to a replacement. When two pushes write one segment, the later one counts.
    """

    number: int
    source: str
    columns: tuple[tuple[str, str], ...]
    segments: tuple[PushedSegment, ...]
    inputs: tuple[Mapping[str, object], ...] = ()
    checks: tuple[Mapping[str, object], ...] = ()


def publish(layout: TableLayout, entry: OpenReplacement) -> None:
    """Open a replacement. One atomic write makes it visible. ConflictError when another home writes the warehouse."""
    require_writable(layout)
    folder = layout.plan(entry.id)
    durable.make_folder(folder.parent)
    folder.mkdir()
    durable.sync(folder.parent)
    _write(folder / REPLACEMENT_FILE, vars(entry))
    publish_plans(layout)


def find_replacement(layout: TableLayout, entry_id: str) -> OpenReplacement | None:
    """The opened replacement with that id; None when there is none."""
    paths_by_id = {
        path.parent.name: path for path in layout.plans.glob(f"*/{REPLACEMENT_FILE}")
    }  # an id must not be used as a path
    return _entry(paths_by_id[entry_id]) if entry_id in paths_by_id else None


def known_replacement(layout: TableLayout, entry_id: str) -> OpenReplacement:
    """The opened replacement with that id; NotFoundError, with a suggestion, when there is none."""
    replacement = find_replacement(layout, entry_id)
    if replacement is None:
        raise NotFoundError.named("Segment lineage entry", entry_id, [entry.id for entry in open_replacements(layout)])
    return replacement


def open_replacements(layout: TableLayout) -> list[OpenReplacement]:
    """Every replacement that was opened, ended or not; oldest first."""
    replacements = [_entry(path) for path in layout.plans.glob(f"*/{REPLACEMENT_FILE}")]
    return sorted(replacements, key=lambda entry: (entry.created_at, entry.id))


def in_progress(layout: TableLayout) -> list[OpenReplacement]:
    """The replacements that have not ended, oldest first."""
    return [entry for entry in open_replacements(layout) if state_of(layout, entry.id) is PushState.IN_PROGRESS]


def state_of(layout: TableLayout, entry_id: str) -> PushState:
    """The state of a replacement."""
    with suppress(FileNotFoundError):
        return PushState(json.loads((layout.plan(entry_id) / CLOSED_FILE).read_text(encoding="utf-8"))["state"])
    done = is_committed(open_half(layout.half(Half.OFFLINE)), entry_id)
    return PushState.COMPLETED if done else PushState.IN_PROGRESS


def is_committed(half: HalfSnapshot, entry_id: str) -> bool:
    """Whether the commit of a replacement is in the log up to this version of OFFLINE."""
    return any(act.id == entry_id for _, act in lineage_acts(half))


@contextmanager
def changing(layout: TableLayout, entry_id: str, timeout_s: float = _PATIENCE_S) -> Iterator[None]:
    """Lock for pushing to, ending or reverting a replacement. ConflictError when another request keeps it too long."""
    with _held(
        layout.plan(entry_id) / _LOCK, f"Replacement '{entry_id}' is being changed by another request.", timeout_s
    ):
        yield


@contextmanager
def opening(layout: TableLayout, timeout_s: float = _PATIENCE_S) -> Iterator[None]:
    """Lock for opening a replacement of a table, so that no two replace the same segments."""
    durable.make_folder(layout.plans)
    with _held(layout.plans / f".{_LOCK}", "Another replacement of the table is being opened.", timeout_s):
        yield


def next_number(layout: TableLayout, entry_id: str) -> int:
    """The number of the next push."""
    return max((push.number for push in _pushes(layout, entry_id)), default=0) + 1


def add_push(layout: TableLayout, entry_id: str, staged: Path, push: Push) -> None:
    """Turn the folder with the staged rows into a push. Call it under `changing`."""
    _write(staged / PUSH_FILE, {**vars(push), "segments": [vars(segment) for segment in push.segments]})
    place = _folder(layout, entry_id, push.number)
    durable.make_folder(place.parent)
    durable.sync_tree(staged)
    durable.rename(staged, place)
    publish_plans(layout)


def pushed(layout: TableLayout, entry_id: str) -> dict[str, tuple[Push, PushedSegment]]:
    """Every pushed segment by its name, with the last push that wrote it."""
    return {segment.name: (push, segment) for push in _pushes(layout, entry_id) for segment in push.segments}


def segment_folder(layout: TableLayout, entry_id: str, push: Push, segment: str) -> Path:
    """The folder with the rows of a pushed segment."""
    return rows_folder(layout, entry_id, push) / folder_of(segment)


def segment_files(layout: TableLayout, entry_id: str, push: Push, segment: PushedSegment) -> list[Path]:
    """The files with the rows of a pushed segment. DataError unless they hold all that were pushed."""
    import pyarrow.parquet as pq

    folder = segment_folder(layout, entry_id, push, segment.name)
    files = sorted(folder.glob("*.parquet"))
    expected, rows = segment.rows + segment.deletes, sum(pq.read_metadata(path).num_rows for path in files)
    if rows != expected:
        raise DataError(
            f"{folder} holds {rows} of {counted(expected, 'row')} that were pushed to '{entry_id}'. "
            "Nothing was changed.",
            hint="Push the segment again: POST /jobs",
        )
    return files


def rows_folder(layout: TableLayout, entry_id: str, push: Push) -> Path:
    """The folder with the rows of a push."""
    return _folder(layout, entry_id, push.number) / ROWS


def staged_bytes(layout: TableLayout, entry_id: str) -> int:
    """The size of all pushes on disk, including pushes that a later one of the same segment overrides."""
    return bytes_in(layout.plan(entry_id) / PUSHES)


def left_behind(layout: TableLayout) -> list[tuple[OpenReplacement, PushState]]:
    """Ended replacements that still have staged rows: a crash came between closing and removing them."""
    with_pushes = [entry for entry in open_replacements(layout) if (layout.plan(entry.id) / PUSHES).exists()]
    states = [(entry, state_of(layout, entry.id)) for entry in with_pushes]
    return [(entry, state) for entry, state in states if state is not PushState.IN_PROGRESS]


def remove_left(layout: TableLayout, entry_id: str, state: PushState) -> None:
    """Remove the staged rows of an ended replacement that `left_behind` returned."""
    with changing(layout, entry_id):
        close(layout, entry_id, state)


def close(layout: TableLayout, entry_id: str, state: PushState) -> None:
    """Record how a replacement ended and remove its pushed rows. Call it under `changing`."""
    require_writable(layout)
    _write(layout.plan(entry_id) / CLOSED_FILE, {"state": state})
    shutil.rmtree(layout.plan(entry_id) / PUSHES, ignore_errors=True)
    durable.sync(layout.plan(entry_id))
    remove_staged(layout, entry_id)


@contextmanager
def _held(path: Path, taken: str, timeout_s: float) -> Iterator[None]:
    with path.open("a") as file:
        if not try_lock(file, timeout_s):
            raise ConflictError(f"{taken} Nothing was changed.", hint="Ask again when it is done.")
        yield


def _folder(layout: TableLayout, entry_id: str, number: int) -> Path:
    return layout.plan(entry_id) / PUSHES / str(number)


def _pushes(layout: TableLayout, entry_id: str) -> Sequence[Push]:
    """The pushes of a replacement, oldest first."""
    paths = (layout.plan(entry_id) / PUSHES).glob(f"*/{PUSH_FILE}")
    return sorted((_push(path) for path in paths), key=lambda push: push.number)


def _push(path: Path) -> Push:
    doc = json.loads(path.read_text(encoding="utf-8"))
    segments = tuple(PushedSegment(**segment) for segment in doc.pop("segments"))
    columns = tuple((name, kind) for name, kind in doc.pop("columns"))
    lists = {"inputs": tuple(doc["inputs"]), "checks": tuple(doc["checks"])}
    return Push(**{**doc, **lists}, segments=segments, columns=columns)


def _entry(path: Path) -> OpenReplacement:
    doc = json.loads(path.read_text(encoding="utf-8"))
    files = {name: tuple(paths) for name, paths in doc["segments_from"].items()}
    return OpenReplacement(**{**doc, "segments_from": files, "segments_to": tuple(doc["segments_to"])})


def _write(path: Path, doc: Mapping[str, object]) -> None:
    durable.write_text(path, json.dumps(doc, default=str))
