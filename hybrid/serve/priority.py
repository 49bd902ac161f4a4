"""The priority of the pipeline's processes on their machine: it gives way while no work is late.

Linux counts niceness within a session only, and gives every session the same share (autogroup: man 7 sched,
kernel/sched/autogroup.c). In a control group with a processor share of its own, niceness counts among all threads. So
both are set: the niceness of the JVM's session, and that of each thread. Anyone may lower and raise the first; raising
the second takes a privilege. Where that is missing, threads keep one fixed, smaller niceness.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

_LOG = logging.getLogger(__name__)
_PROC = Path("/proc")
_AUTOGROUP_TRIES = 20
# Late work keeps its priority until none has been late for so long, s: changing it takes some milliseconds.
_CALM_S = 2.0
# Repeated work is late when one round takes longer, s: a batch is committed within two seconds of its rows' arrival.
_ROUND_S_MAX = 1.0
# New threads take the niceness of their parents, which may be read before them and changed after.
_ROUNDS_MAX = 3
# The most niceness of threads that cannot be raised again.
FIXED_MAX = 2


class Rounds:
    """Work that is done in rounds, and whether it is late. The first round is: processes start cold."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._is_first = True
        # Whether the last round has left something to do at once.
        self.has_rest = False

    @contextmanager
    def one(self) -> Iterator[None]:
        """A round."""
        self._began = time.monotonic()
        try:
            yield
        finally:
            self._began, self._is_first = None, False

    @property
    def is_late(self) -> bool:
        """Whether a round takes too long, or the last one has left a rest."""
        began = self._began
        if began is None:
            return self.has_rest
        return self.has_rest or self._is_first or time.monotonic() - began > _ROUND_S_MAX


class Priority:
    """Gives way by `niceness` more than this process was started with, unless work is late.

    `sessions` returns the leaders of further sessions, the JVM's, which hold no other processes. Call `follow` often.
    """

    def __init__(
        self, niceness: int, sessions: Callable[[], list[int]], proc: Path = _PROC, can_raise: bool | None = None
    ) -> None:
        self._niceness, self._sessions, self._proc = niceness, sessions, proc
        self._base = os.getpriority(os.PRIO_PROCESS, 0)
        self._is_raisable = can_raise_again() if can_raise is None else can_raise
        self._late_at: float | None = None
        self._current: int | None = None
        if not self._is_raisable:
            os.nice(min(niceness, FIXED_MAX))

    def follow(self, is_late: bool, now: float) -> int:
        """Raise or lower the priority if need be; return by how much it gives way. `now`: monotonic, s."""
        if is_late or self._late_at is None:
            self._late_at = now
        target = 0 if now - self._late_at < _CALM_S else self._niceness
        if target != self._current:
            self._current = target
            self._set(self._base + target)
        return target

    def restore(self) -> None:
        """Give way no more than at the start, as far as that is permitted."""
        self._current = 0
        self._set(self._base)

    def _set(self, niceness: int) -> None:
        leaders = self._sessions()
        for leader in leaders:
            set_session_niceness(leader, niceness, str(self._proc / "{}" / "autogroup"))
        if self._is_raisable:
            for _ in range(_ROUNDS_MAX):
                if not sum(_renice(thread, niceness) for thread in self._threads(leaders)):
                    break
        _LOG.debug("The pipeline has niceness %d", niceness)

    def _threads(self, leaders: Sequence[int]) -> Iterator[int]:
        """The threads of this process, and of all processes of the sessions."""
        own = os.getpid()
        for folder in self._proc.glob("[0-9]*"):
            process = int(folder.name)
            if process == own or (leaders and session_of(process) in leaders):
                yield from (int(task.name) for task in _entries(folder / "task"))


def can_raise_again() -> bool:
    """Whether a thread whose niceness was raised may lower it again: a privilege on most systems."""
    if not (_PROC / "self" / "task").exists():
        return False
    outcomes: list[bool] = []

    def attempt() -> None:
        thread = threading.get_native_id()
        before = os.getpriority(os.PRIO_PROCESS, thread)
        try:
            os.setpriority(os.PRIO_PROCESS, thread, min(before + 1, 19))
            os.setpriority(os.PRIO_PROCESS, thread, before)
        except OSError:
            outcomes.append(False)
        else:
            outcomes.append(True)

    # In a thread that ends: niceness is a property of threads on Linux.
    trial = threading.Thread(target=attempt, name="niceness")
    trial.start()
    trial.join()
    return outcomes == [True]


def set_session_niceness(pid: int, niceness: int, path: str = "/proc/{}/autogroup", pause_s: float = 0.1) -> None:
    """Set the niceness of a process's session. Does nothing without autogroups, or when it is refused.

    Without root, one autogroup of the machine can be changed per tenth of a second.
    """
    for _ in range(_AUTOGROUP_TRIES):
        try:
            with open(path.format(pid), "w", encoding="ascii") as file:
                file.write(str(niceness))
            return
        except BlockingIOError:
            time.sleep(pause_s)
        except OSError:
            return


def _renice(thread: int, niceness: int) -> bool:
    """Set a thread's niceness; return whether it had another one."""
    try:
        if os.getpriority(os.PRIO_PROCESS, thread) == niceness:
            return False
        os.setpriority(os.PRIO_PROCESS, thread, niceness)
    except OSError:  # it has ended, or may not be changed
        return False
    return True


def session_of(process: int) -> int | None:
    """The session of a process; None when it has ended."""
    try:
        return os.getsid(process)
    except OSError:
        return None


def _entries(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []
