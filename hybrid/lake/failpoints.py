"""Named points at which a test makes the process die, at every commit site and nowhere else.

`HYBRID_FAILPOINT=move.commit.inside` ends this process with SIGKILL when it comes there; `NAME@3` at the third time.
`before` is after the plan and the staging; `inside` is when data files are written and the log entry is not;
`after` is when the log entry is there and nothing else has been told.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Every kind of act that commits. A test holds this list to the kinds the code commits.
ACT_KINDS = (
    "create", "ingest", "seal", "move", "replace", "revert", "boundary", "history", "start",
    "flow", "refresh", "evolve", "backfill", "purge", "replay", "claim", "release", "retention", "merge",
    "reset",
)  # fmt: skip
POSITIONS = ("before", "inside", "after")

_passed: dict[str, int] = {}


def names() -> tuple[str, ...]:
    """All failpoints there are."""
    return tuple(f"{kind}.commit.{position}" for kind in ACT_KINDS for position in POSITIONS)


def failpoint(kind: str, position: str) -> None:
    """Dies here when the environment names this point."""
    if _armed(kind, position):
        _die()


@contextmanager
def failpoint_inside(kind: str, half: Path) -> Iterator[None]:
    """Dies inside the commit: as soon as a new data file lies in the half and before its log entry does.

    A thread watches the folder, because the commit is one call into Spark. An act that writes no file (a state alone)
    dies when it is about to be logged, which a watcher cannot tell from before.
    """
    if not _armed(kind, "inside"):
        yield
        return
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(half, _files(half), done), daemon=True)
    watcher.start()
    yield
    done.set()
    _die()


def _watch(half: Path, known: set[Path], done: threading.Event) -> None:
    while not done.wait(0.002):
        if _files(half) - known:
            _die()


def _files(half: Path) -> set[Path]:
    return {path for path in half.glob("*/*.parquet") if "_delta_log" not in path.parts}


def _armed(kind: str, position: str) -> bool:
    assert kind in ACT_KINDS and position in POSITIONS, f"unlisted failpoint {kind}.commit.{position}"
    wanted, _, time = os.environ.get("HYBRID_FAILPOINT", "").partition("@")
    name = f"{kind}.commit.{position}"
    if wanted != name:
        return False
    _passed[name] = _passed.get(name, 0) + 1
    return _passed[name] == int(time or 1)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
