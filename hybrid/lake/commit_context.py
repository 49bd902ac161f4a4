"""Context of every operation on a half: a Spark session on first use, the half's lock, a clock, progress messages."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hybrid.config.table_config import Half
from hybrid.errors import OvertakenError, SpecError
from hybrid.lake.delta_errors import is_missing_file
from hybrid.lake.layout import TableLayout
from hybrid.lake.lock import half_lock
from hybrid.lake.staging import staging_folder
from hybrid.progress import Progress
from hybrid.runtime.json_values import stamp
from hybrid.store.mirror import mirror_at
from hybrid.table.state import HalfState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Report = TypeVar("Report")

_ATTEMPTS = 5
_TURNS: dict[Path, threading.Lock] = {}


@dataclass(frozen=True)
class LockedHalf:
    """A half whose lock is held. `start_spark` returns the session, and records its JVM in the lock."""

    path: Path
    start_spark: Callable[[], SparkSession]

    def commit_state(self, state: HalfState, *, planned: int) -> int:
        """Make `state` the half's state, without rows; see `hybrid.lake.commit.commit_state`."""
        from hybrid.lake.commit import commit_state  # imports Delta, which starting a command must not

        return commit_state(self.path, state, planned=planned, start_spark=self.start_spark)


@dataclass
class CommitContext:
    """`start_spark` starts or returns this process's session; `now_ms` returns the clock in epoch milliseconds.

    `has_shared_files`: Spark's workers see the home's folders, by its setting `spark.worker_files`. Without `has_jvm`
    sessions are on a Spark Connect server, and `start_spark` returns another one when that has lost the one before.
    """

    start_spark: Callable[[], SparkSession]
    now_ms: Callable[[], int]
    progress: Progress
    lock_timeout_s: float = 60.0
    has_shared_files: bool = True
    has_jvm: bool = True

    @property
    def session(self) -> SparkSession:
        """The Spark session, whose workers may not see the home's folders; the first use in a process starts a JVM.

        On a Spark Connect server each use asks whether the session is still there.
        """
        from hybrid.lake.spark_connect import make_columns

        make_columns(for_server=not self.has_jvm)  # before a start, too: PySpark would look for a server
        return self._session_of_jvm if self.has_jvm else self.start_spark()

    @cached_property
    def _session_of_jvm(self) -> SparkSession:
        return self.start_spark()

    def end_session(self) -> None:
        """End the session of this process, if there is one; its JVM stays, for another one."""
        session = vars(self).pop("_session_of_jvm", None)
        if session is not None:
            session.stop()

    @property
    def spark(self) -> SparkSession:
        """The session, for work whose workers read or write the home's folders; SpecError if they do not see them."""
        self.require_shared_files()
        return self.session

    @property
    def file_workers(self) -> SparkSession | None:
        """The session for tasks over files of the home, for `run_numbered`; None if its workers do not see them."""
        return self.session if self.has_shared_files else None

    def require_shared_files(self, work: str = "this work") -> None:
        """SpecError, before anything is done, when Spark's workers do not see the home's folders."""
        if not self.has_shared_files:
            raise SpecError(
                f"With spark.worker_files = 'store', {work} needs workers that share the home's folders, or a local "
                "master. Nothing was started.",
                hint="While no server of this home runs: HYBRID_SPARK_WORKER_FILES=shared "
                "HYBRID_SPARK_MASTER='local[2]' hybrid ...",
            )

    @contextmanager
    def lock(self, layout: TableLayout, half: Half, *, with_spark: bool = True) -> Iterator[LockedHalf]:
        """Hold the lock of a half, and record this process's JVM in it. Hold it for plan check and commit only.

        Threads of this process first take turns among themselves, so a waiting message only concerns other processes.
        Without `with_spark` no JVM is started: the work under the lock only writes files of the log. Where it needs
        Spark after all, `LockedHalf` records the JVM. A Spark Connect server commits nothing, so it is no holder.
        """
        from hybrid.lake.spark import is_running, jvm_pid

        path = layout.lock(half)
        turn = _TURNS.setdefault(path, threading.Lock())
        pid = jvm_pid(self.session) if self.has_jvm and (with_spark or is_running()) else None
        file_lock = half_lock(
            path, jvm_pid=pid, commits=with_spark, timeout_s=self.lock_timeout_s, waiting=self.progress.say
        )
        with turn, file_lock as record_jvm:

            def recorded_spark() -> SparkSession:
                if self.has_jvm:
                    record_jvm(jvm_pid(self.session))
                return self.session

            _settle(layout.half(half))
            yield LockedHalf(layout.half(half), recorded_spark)

    def until_not_overtaken(self, table: str, attempt: Callable[[], Report], attempts_min: int = 1) -> Report:
        """Run an operation on OFFLINE, and plan it again whenever another one committed first.

        It allows at least `attempts_min` attempts. Raises OvertakenError when every attempt failed; nothing was changed
        then. A file that is missing when it is read belonged to an older version and was purged, which counts as a
        conflict too.
        """
        attempts = max(_ATTEMPTS, attempts_min)
        for turn in range(attempts):
            try:
                return attempt()
            except OvertakenError:
                self.progress.say(f"Another operation on OFFLINE of '{table}' came first; planning again.")
            except Exception as error:  # pyspark raises one class for everything that fails in a task
                from hybrid.lake.workers import worker_fault

                fault = worker_fault(error)
                if fault is not None:
                    raise fault from error
                if turn == attempts - 1 or not is_missing_file(error):
                    raise
                self.progress.say(f"A file of '{table}' was purged while it was read; planning again.")
        raise OvertakenError(
            f"Other operations on OFFLINE of table '{table}' came first {attempts} times. Nothing was changed.",
            hint="Run it again when they are done: hybrid task list",
        )

    def now_iso(self) -> str:
        """The clock as UTC ISO 8601."""
        return stamp(self.now_ms())

    def staging(self, layout: TableLayout, act_id: str) -> AbstractContextManager[Path]:
        """A folder for staged rows, removed at the end. The next start sweeps the folders of killed operations.

        ConflictError when another home writes the warehouse: what is staged could not be committed.
        """
        mirror = mirror_at(layout.root)
        if mirror is not None:
            mirror.require_writable()
        return staging_folder(layout.staging(act_id))


def _settle(half: Path) -> None:
    """Bring a mirror's half up to what its store has, if the last holder of its lock could not."""
    mirror = mirror_at(half)
    if mirror is not None:
        from hybrid.lake.store_log import settle

        settle(mirror, half)


def new_act_id(kind: str) -> str:
    """A new operation id, such as `move-5f0c…`."""
    return f"{kind}-{uuid.uuid4().hex[:16]}"
