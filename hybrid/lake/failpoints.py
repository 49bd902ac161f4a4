"""Failpoints: named points in every commit at which a test makes the process die, and nowhere else.

`HYBRID_FAILPOINT=move.commit.inside` ends this process with SIGKILL at that point; `NAME@3` at the third pass. `before`
is after planning and staging. `inside` is when data files, if there are any, are written and the log entry is not.
`after` is when the log entry is written and nothing else has been notified.

Work that commits nothing, and what a commit does on a warehouse's store, have steps instead (`STEPS`, `STORE_STEPS`,
`PLAN_STEPS`, `PURGE_STEPS`), which are named alike: `HYBRID_FAILPOINT=backup.object@7`. At `store.put` the store has
the entry, and the mirror not.

With `HYBRID_FAILPOINT_SIGNAL=STOP` the process stops there, as one that is frozen, and goes on by SIGCONT.
"""

from __future__ import annotations

import os
import signal

# Every kind of operation that commits. A test compares this list with the kinds in the code.
ACT_KINDS = (
    "create", "ingest", "seal", "move", "replace", "revert", "boundary", "history", "start",
    "flow", "refresh", "evolve", "backfill", "purge", "replay", "claim", "release", "retention", "merge",
    "reset",
)  # fmt: skip
POSITIONS = ("before", "inside", "after")
# The steps of backups, in which a kill must leave every earlier backup, and no half of a restored home.
STEPS = (
    "backup.pinned", "backup.part", "backup.object", "backup.copied", "backup.manifest", "backup.published",
    "backup.withdrawn", "backup.removed", "restore.file", "restore.copied", "restore.renamed",
)  # fmt: skip
# Those of a commit to a warehouse on a store, which is done once the store has the entry.
STORE_STEPS = ("store.staged", "store.uploaded", "store.put", "store.linked")
# Those of a plan, or of a push to a replacement, that is brought to a store; and of the removal of its staged rows.
PLAN_STEPS = ("plan.uploaded", "plan.written", "plan.published", "plan.removed")
# Those of a file that one of Spark's workers puts on a store itself, and of the process that brings such files.
WORKER_STEPS = ("worker.written", "worker.uploaded", "worker.brought")
# Those of a purge on a store: what was written again, and deleted, there and not yet here; older versions that were
# listed and are there yet; the id that followers are told by.
PURGE_STEPS = ("purge.rewritten", "purge.removed", "purge.versions", "purge.announced")

_SIGNALS = {"KILL": signal.SIGKILL, "STOP": signal.SIGSTOP}

_passed: dict[str, int] = {}


def names() -> tuple[str, ...]:
    """The names of all failpoints."""
    return tuple(f"{kind}.commit.{position}" for kind in ACT_KINDS for position in POSITIONS)


def failpoint(kind: str, position: str) -> None:
    """Kill or stop the process here when the environment names this point."""
    if _armed(kind, position):
        _die()


def step(name: str) -> None:
    """Kill or stop the process at this step, when the environment names it."""
    assert name in (*STEPS, *STORE_STEPS, *PLAN_STEPS, *WORKER_STEPS, *PURGE_STEPS), f"unlisted step {name}"
    if _is_due(name):
        _die()


def _armed(kind: str, position: str) -> bool:
    assert kind in ACT_KINDS and position in POSITIONS, f"unlisted failpoint {kind}.commit.{position}"
    return _is_due(f"{kind}.commit.{position}")


def _is_due(name: str) -> bool:
    """Whether the environment names this point, at this pass."""
    armed_name, _, time = os.environ.get("HYBRID_FAILPOINT", "").partition("@")
    if armed_name != name:
        return False
    _passed[name] = _passed.get(name, 0) + 1
    return _passed[name] == int(time or 1)


def _die() -> None:
    os.kill(os.getpid(), _SIGNALS[os.environ.get("HYBRID_FAILPOINT_SIGNAL", "KILL")])
