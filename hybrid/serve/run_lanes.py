"""Which queued runs may start beside those that run. The pipeline starts runs by it, and the console tells by it why
one waits.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from hybrid.catalog.run_record import RunRecord, rests
from hybrid.rpc.verbs import BACKFILL, INGEST, SEAL
from hybrid.table.state import RESET

WORKERS_MAX = 4
Lane = tuple[str, str]
_LANES = {INGEST: INGEST, SEAL: INGEST, RESET: INGEST, BACKFILL: BACKFILL}


class Wait(NamedTuple):
    """Why a queued run waits, in one sentence, and the id of the run that it waits for, if there is one."""

    sentence: str
    run: str | None = None


def lane_of(run: RunRecord) -> Lane:
    """Return the lane of a run: runs of one lane execute serially.

    A table has lanes for its REALTIME half, for backfills and for OFFLINE: moves continue during long backfills.
    """
    return run.table_name, _LANES.get(run.type, "offline")


def is_full_for_backfills(busy: Collection[Lane]) -> bool:
    """Whether no further backfill may start: each may take hours, so one worker stays free for other runs."""
    return sum(kind == BACKFILL for _, kind in busy) >= WORKERS_MAX - 1


def may_start(run: RunRecord, busy: Collection[Lane]) -> bool:
    """Whether a queued run may start beside the lanes that are busy."""
    return not (lane_of(run) in busy or (run.type == BACKFILL and is_full_for_backfills(busy)) or rests(run))


def why_waits(run: RunRecord, running: Sequence[RunRecord], queued: Sequence[RunRecord]) -> Wait:
    """Return why a queued run has not started. `running` are all runs that run, `queued` those before it in the queue.

    Runs of a command's own process take no lane: the pipeline does not know them.
    """
    own = [other for other in running if other.verb is not None]
    busy = {lane_of(other): other for other in own}
    ahead = busy.get(lane_of(run))
    if ahead is not None:
        return Wait("It starts when a run that works on the same part of the table has ended.", ahead.id)
    if rests(run):
        return Wait("The server's process ended while it ran. It starts again after a pause of seconds.")
    if run.type == BACKFILL and is_full_for_backfills(busy):
        return Wait(f"{WORKERS_MAX - 1} backfills run; one worker stays free for other runs.")
    first = next((other for other in queued if lane_of(other) == lane_of(run)), None)
    if first is not None:
        return Wait("It starts after a run on the same part of the table, which waits too.", first.id)
    if len(own) >= WORKERS_MAX:
        return Wait(f"All {WORKERS_MAX} workers are busy.")
    return Wait("It starts next.")
