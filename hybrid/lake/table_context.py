"""`TableContext`: the table that an engine works on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from hybrid.config.table_config import Half, TableSpec
from hybrid.lake.commit_context import CommitContext, LockedHalf
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.staged_frames import remove_staged_files
from hybrid.lake.workers import raised_by_worker

Result = TypeVar("Result")


@dataclass(frozen=True)
class TableContext:
    """A table with its definition, its folders, and the commit context of this process."""

    bench: CommitContext
    spec: TableSpec
    layout: TableLayout

    @property
    def name(self) -> str:
        """The table's name."""
        return self.spec.name

    def half(self, half: Half) -> HalfSnapshot:
        """The newest snapshot of a half."""
        return open_half(self.layout.half(half))

    def renewed(self, newest: Callable[[], TableSpec] | None) -> TableContext:
        """The table with the definition that `newest` returns: columns may be added while an operation is planned."""
        return self if newest is None else replace(self, spec=newest())

    @contextmanager
    def lock(self, half: Half, *, with_spark: bool = True) -> Iterator[LockedHalf]:
        """Hold the lock of a half; see `CommitContext.lock`. Errors of workers as in `staging`."""
        with self.bench.lock(self.layout, half, with_spark=with_spark) as locked, raised_by_worker():
            yield locked

    @contextmanager
    def staging(self, act_id: str) -> Iterator[Path]:
        """A folder for staged rows; see `CommitContext.staging`. What workers staged on the store goes with it.

        An error that workers raised while they made rows is raised as it was.
        """
        with self.bench.staging(self.layout, act_id) as folder:
            try:
                with raised_by_worker():
                    yield folder
            finally:
                if not self.bench.has_shared_files:
                    remove_staged_files(folder)

    def until_not_overtaken(self, attempt: Callable[[], Result], attempts_min: int = 1) -> Result:
        """Run an operation, and plan it again on a conflict; see `CommitContext.until_not_overtaken`."""
        return self.bench.until_not_overtaken(self.name, attempt, attempts_min)
