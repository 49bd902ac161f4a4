"""Storage of backfill plans: a folder each beside the halves, with the plan, its staged rows, and its desired state.

<table>/plans/<id>/plan.json      the plan; it never changes
<table>/plans/<id>/rows/          the segments that it would write, laid out as a half is
<table>/plans/<id>/claims/        the messages of its rejected rows; only for a plan that replays some
<table>/plans/<id>/wanted.json    the desired state (run, pause, cancel), and how the last run ended
<table>/plans/<id>/running        locked by the process that runs it

The progress of a plan is not stored here: the OFFLINE half's log holds it. A warehouse on a store has all of it but the
lock: see hybrid.lake.plan_store.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hybrid.errors import ConflictError, DataError
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot, lineage_acts
from hybrid.lake.log_entries import DataFile
from hybrid.lake.plan_store import publish_plans, remove_staged, require_writable, rewrite_document, upload_plan
from hybrid.lake.staging import bytes_in
from hybrid.runtime import durable
from hybrid.runtime.file_lock import is_locked, try_lock
from hybrid.runtime.json_values import without_samples
from hybrid.store.plan_files import CLAIMS, PLAN_FILE, ROWS, WANTED_FILE
from hybrid.table.columns import TIME
from hybrid.table.plans import Plan, Span, Unit

_PATIENCE_S = 0.5  # a reader holds the lock only for a moment
_RUNNING = "running"


class DesiredState(StrEnum):
    """The desired state of a plan. ENDED: everything is done, nothing remains to run."""

    LOOK = "look"
    RUN = "run"
    PAUSE = "pause"
    CANCEL = "cancel"
    ENDED = "ended"


@dataclass(frozen=True)
class DesiredStateRecord:
    """The desired state, since when (ISO 8601), and the error that the last run ended with."""

    wish: DesiredState = DesiredState.LOOK
    since: str | None = None
    error: str | None = None


def publish(layout: TableLayout, staged: Path, plan: Plan) -> Path:
    """Turn the folder with the staged rows into a plan. One rename makes it visible, atomically.

    ConflictError when another home writes the warehouse. After a StoreError the plan is here, and perhaps listed yet.
    """
    staged.mkdir(parents=True, exist_ok=True)
    (staged / ROWS).mkdir(exist_ok=True)
    (staged / PLAN_FILE).write_text(plan.to_text(), encoding="utf-8")
    place = layout.plan(plan.id)
    durable.make_folder(place.parent)
    durable.sync_tree(staged)
    upload_plan(layout, plan.id, staged)
    durable.rename(staged, place)
    publish_plans(layout)
    return place


def find_plan(layout: TableLayout, plan_id: str) -> Plan | None:
    """The plan with that id; None when the table has none."""
    path = layout.plan(plan_id) / PLAN_FILE
    try:
        return Plan.from_text(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} cannot be read as a plan: {error!r}.", hint="Plan the backfill again.") from error


def plan_ids(layout: TableLayout) -> list[str]:
    """The ids of a table's plans, newest first."""
    folders = [path.parent for path in layout.plans.glob(f"*/{PLAN_FILE}")]
    return [path.name for path in sorted(folders, key=lambda path: (path / PLAN_FILE).stat().st_mtime_ns, reverse=True)]


def desired_state_of(layout: TableLayout, plan_id: str) -> DesiredStateRecord:
    """The desired state of a plan."""
    try:
        doc = json.loads((layout.plan(plan_id) / WANTED_FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return DesiredStateRecord()
    return DesiredStateRecord(DesiredState(doc["wish"]), doc["since"], doc["error"])


def want(layout: TableLayout, plan_id: str, wanted: DesiredStateRecord) -> None:
    """Store the desired state of a plan. ConflictError when another home writes the warehouse."""
    require_writable(layout)
    durable.write_text(layout.plan(plan_id) / WANTED_FILE, json.dumps(vars(wanted)))
    publish_plans(layout)


@contextmanager
def runner(layout: TableLayout, plan_id: str) -> Iterator[None]:
    """Lock for running or reverting a plan. Raises ConflictError when somebody else holds it."""
    with (layout.plan(plan_id) / _RUNNING).open("a") as file:
        if not try_lock(file, _PATIENCE_S):
            raise ConflictError(
                f"Backfill '{plan_id}' is being run already. Nothing was changed.",
                hint=f"hybrid backfill status {plan_id}",
            )
        yield


def is_running(layout: TableLayout, plan_id: str) -> bool:
    """Whether a process is running the plan now."""
    return is_locked(layout.plan(plan_id) / _RUNNING)


def corrected_spans(half: HalfSnapshot, plan_id: str) -> set[Span]:
    """The buckets that commits of a plan corrected up to this version of OFFLINE, including reverted ones."""
    details = [act.detail for _, act in lineage_acts(half) if act.detail.get("backfill") == plan_id]
    spans = [buckets for detail in details if isinstance(buckets := detail.get("buckets"), (list, tuple))]
    return {(start, end) for buckets_of_commit in spans for start, end in buckets_of_commit}


def was_reverted(half: HalfSnapshot, plan_id: str) -> bool:
    """Whether effective reverts undid everything that a plan corrected up to this version of OFFLINE."""
    taken: set[object] = set()
    has_corrected = False
    for _, act in lineage_acts(half):  # newest first: a revert precedes what it reverts
        stands = act.id not in taken and act.detail.get("backfill") not in taken
        if act.detail.get("backfill") == plan_id:
            has_corrected = True
            if stands:
                return False
        if stands and act.detail.get("reverts") is not None:
            taken.add(act.detail["reverts"])
    return has_corrected


def rows_folder(layout: TableLayout, plan_id: str) -> Path:
    """The folder of a plan's staged segments."""
    return layout.plan(plan_id) / ROWS


def claims_folder(layout: TableLayout, plan_id: str) -> Path | None:
    """The folder with the messages of a plan's rejected rows; None when it replays none."""
    folder = layout.plan(plan_id) / CLAIMS
    return folder if folder.is_dir() else None


def forget_samples(layout: TableLayout, plan_id: str) -> bool:
    """Remove the sample rows from a plan. Returns whether it had any."""
    return rewrite_document(layout.plan(plan_id) / PLAN_FILE, text_without_samples)


def text_without_samples(text: str) -> str:
    """The document of a plan without sample rows."""
    document = json.loads(text)
    bare = without_samples(document)
    return text if bare == document else json.dumps(bare, separators=(",", ":"))


def has_rows(layout: TableLayout, plan_id: str) -> bool:
    """Whether a plan's staged rows still exist."""
    return rows_folder(layout, plan_id).is_dir()


def staged_bytes(layout: TableLayout, plan_id: str) -> int:
    """The size of a plan's staged rows on disk."""
    return bytes_in(rows_folder(layout, plan_id))


def staged_files(layout: TableLayout, plan: Plan, units: Sequence[Unit]) -> list[DataFile]:
    """The staged segments of some units, as files of the half. Queries can prune them by time only."""
    folder = rows_folder(layout, plan.id).absolute()
    files = []
    for segment in (segment for unit in units for segment in unit.written):
        low = {} if segment.low is None else {TIME: segment.low}
        high = {} if segment.high is None else {TIME: segment.high}
        for path in segment.files:
            # Rows are counted per segment; the first file carries the count.
            rows = segment.rows if path == segment.files[0] else 0
            files.append(DataFile(str(folder / path), segment.name, rows, 0, 0, low, high))
    return files


def discard_rows(layout: TableLayout, plan_id: str) -> None:
    """Remove the staged rows of a plan that has ended; the plan itself stays for inspection."""
    remove_rows(layout, plan_id)
    remove_staged(layout, plan_id)


def remove_rows(layout: TableLayout, plan_id: str) -> None:
    """Remove the staged rows of a plan that has ended from the home's folder alone."""
    folder = rows_folder(layout, plan_id)
    gone = folder.with_name(f"{ROWS}.gone")
    with suppress(FileNotFoundError):
        folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
    durable.sync(folder.parent)  # after a power failure the next purge must not see them again
