"""Where plans of backfills lie: a folder each beside the halves, with the plan, its staged rows, and what is wanted.

<table>/plans/<id>/plan.json      the plan; it never changes
<table>/plans/<id>/rows/          the segments that it would write, laid out as a half is
<table>/plans/<id>/claims/        the messages of rejected rows that it brings; only of such a plan
<table>/plans/<id>/wanted.json    what somebody wants of it (run, pause, cancel), how the last run ended
<table>/plans/<id>/running        locked by the process that runs it

What is done of a plan does not stand here: the OFFLINE half's log says it.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hybrid.errors import ConflictError, DataError
from hybrid.lake.layout import TableLayout
from hybrid.lake.lock import try_lock
from hybrid.lake.log import DataFile, HalfSnapshot, lineage_acts
from hybrid.lake.staging import bytes_in
from hybrid.runtime import durable
from hybrid.runtime.json_values import without_samples
from hybrid.table.columns import TIME
from hybrid.table.plans import Plan, Span, Unit

ROWS, CLAIMS = "rows", "claims"
_PATIENCE_S = 0.5  # somebody who only looks has the lock for a moment
_PLAN, _WANTED, _RUNNING = "plan.json", "wanted.json", "running"


class DesiredState(StrEnum):
    """What is wanted of a plan. ENDED: nothing more, everything is done."""

    LOOK = "look"
    RUN = "run"
    PAUSE = "pause"
    CANCEL = "cancel"
    ENDED = "ended"


@dataclass(frozen=True)
class DesiredStateRecord:
    """What is wanted, since when (ISO 8601), and the error that the last run ended with."""

    wish: DesiredState = DesiredState.LOOK
    since: str | None = None
    error: str | None = None


def publish(layout: TableLayout, staged: Path, plan: Plan) -> Path:
    """Makes a plan of the folder that its rows were staged in. It is there by one rename, or it is not."""
    staged.mkdir(parents=True, exist_ok=True)
    (staged / ROWS).mkdir(exist_ok=True)
    (staged / _PLAN).write_text(plan.to_text(), encoding="utf-8")
    place = layout.plan(plan.id)
    durable.make_folder(place.parent)
    durable.sync_tree(staged)
    durable.rename(staged, place)
    return place


def find_plan(layout: TableLayout, plan_id: str) -> Plan | None:
    """The plan of that id; None when the table has none."""
    path = layout.plan(plan_id) / _PLAN
    try:
        return Plan.from_text(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} cannot be read as a plan: {error!r}.", hint="Plan the backfill anew.") from error


def plan_ids(layout: TableLayout) -> list[str]:
    """The plans of a table, newest first."""
    found = [path.parent for path in layout.plans.glob(f"*/{_PLAN}")]
    return [path.name for path in sorted(found, key=lambda path: (path / _PLAN).stat().st_mtime_ns, reverse=True)]


def desired_state_of(layout: TableLayout, plan_id: str) -> DesiredStateRecord:
    """What is wanted of a plan."""
    try:
        doc = json.loads((layout.plan(plan_id) / _WANTED).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return DesiredStateRecord()
    return DesiredStateRecord(DesiredState(doc["wish"]), doc["since"], doc["error"])


def want(layout: TableLayout, plan_id: str, wanted: DesiredStateRecord) -> None:
    """Writes down what is wanted of a plan."""
    durable.write_text(layout.plan(plan_id) / _WANTED, json.dumps(vars(wanted)))


@contextmanager
def runner(layout: TableLayout, plan_id: str) -> Iterator[None]:
    """Held by whoever runs or reverts a plan. ConflictError when somebody does already."""
    with (layout.plan(plan_id) / _RUNNING).open("a") as file:
        if not try_lock(file, _PATIENCE_S):
            raise ConflictError(
                f"Backfill '{plan_id}' is being run already. Nothing was changed.",
                hint=f"hybrid backfill status {plan_id}",
            )
        yield


def is_running(layout: TableLayout, plan_id: str) -> bool:
    """Whether a process runs the plan at this moment."""
    try:
        with (layout.plan(plan_id) / _RUNNING).open("r+") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # those who look do not hinder each other
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def corrected_spans(half: HalfSnapshot, plan_id: str) -> set[Span]:
    """The buckets that commits of a plan have corrected up to this version of OFFLINE, reverted ones too."""
    details = [act.detail for _, act in lineage_acts(half) if act.detail.get("backfill") == plan_id]
    spans = [one for detail in details if isinstance(one := detail.get("buckets"), (list, tuple))]
    return {(start, end) for found in spans for start, end in found}


def was_reverted(half: HalfSnapshot, plan_id: str) -> bool:
    """Whether all that a plan has corrected up to this version of OFFLINE is taken back by reverts that stand."""
    taken: set[object] = set()
    has_corrected = False
    for _, act in lineage_acts(half):  # newest first: a revert comes before what it takes back
        stands = act.id not in taken and act.detail.get("backfill") not in taken
        if act.detail.get("backfill") == plan_id:
            has_corrected = True
            if stands:
                return False
        if stands and act.detail.get("reverts") is not None:
            taken.add(act.detail["reverts"])
    return has_corrected


def rows_folder(layout: TableLayout, plan_id: str) -> Path:
    """Where a plan's staged segments lie."""
    return layout.plan(plan_id) / ROWS


def claims_folder(layout: TableLayout, plan_id: str) -> Path | None:
    """Where the messages of rejected rows lie that a plan brings; None when it brings none."""
    folder = layout.plan(plan_id) / CLAIMS
    return folder if folder.is_dir() else None


def forget_samples(layout: TableLayout, plan_id: str) -> bool:
    """Takes the rows out of a plan that it shows as samples; whether it had some."""
    path = layout.plan(plan_id) / _PLAN
    document = json.loads(path.read_text(encoding="utf-8"))
    bare = without_samples(document)
    if bare == document:
        return False
    durable.write_text(path, json.dumps(bare, separators=(",", ":")))
    return True


def has_rows(layout: TableLayout, plan_id: str) -> bool:
    """Whether a plan's staged rows are still there."""
    return rows_folder(layout, plan_id).is_dir()


def staged_bytes(layout: TableLayout, plan_id: str) -> int:
    """What a plan's staged rows take on disk."""
    return bytes_in(rows_folder(layout, plan_id))


def staged_files(layout: TableLayout, plan: Plan, units: Sequence[Unit]) -> list[DataFile]:
    """The staged segments of some units, as files of the half. Only their times can rule them out of a query."""
    folder = rows_folder(layout, plan.id).absolute()
    found = []
    for segment in (segment for unit in units for segment in unit.written):
        low = {} if segment.low is None else {TIME: segment.low}
        high = {} if segment.high is None else {TIME: segment.high}
        for path in segment.files:
            # Rows are counted by segment; the first of its files stands for all.
            rows = segment.rows if path == segment.files[0] else 0
            found.append(DataFile(str(folder / path), segment.name, rows, 0, 0, low, high))
    return found


def discard_rows(layout: TableLayout, plan_id: str) -> None:
    """Removes a plan's staged rows; the plan itself stays, to be looked at."""
    folder = rows_folder(layout, plan_id)
    gone = folder.with_name(f"{ROWS}.gone")
    with suppress(FileNotFoundError):
        folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)
    durable.sync(folder.parent)  # a purge that looks here next must not see them again after a power failure
