"""Queues scheduled tasks when they are due: at most one incomplete run per table and type."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from hybrid.api.hybrid import Hybrid
from hybrid.config.cron import Cron
from hybrid.config.table_config import TableSpec
from hybrid.errors import HybridError
from hybrid.operations.schedules import SCHEDULE
from hybrid.operations.tasks import crons_of
from hybrid.rpc.queue import enqueue
from hybrid.runtime.json_values import epoch_ms

_LOG = logging.getLogger(__name__)


class Scheduler:
    """The schedules of a home. A task that was due while no server ran is run once after the next start."""

    def __init__(self, home: Hybrid) -> None:
        self._home = home
        self._since: dict[tuple[str, str], int] = {}
        # When the first task of each table is due, by its definition. Computing it costs the most of a look.
        self._due: dict[str, tuple[TableSpec, int | None]] = {}

    def look(self, specs: Iterable[TableSpec]) -> None:
        """Queue the due tasks of tables. A table that is dropped or damaged meanwhile is logged and skipped."""
        now_ms = self._home.context.now_ms()
        for spec in specs:
            known, due_ms = self._due.get(spec.name, (None, None))
            if known is spec and (due_ms is None or due_ms > now_ms):
                continue
            try:
                dues = [self._look_at_task(spec, kind, cron, now_ms) for kind, cron in crons_of(spec).items()]
            except HybridError as error:
                _LOG.warning("The schedule of '%s' cannot be looked at: %s", spec.name, error)
                continue
            self._due[spec.name] = spec, min((due for due in dues if due is not None), default=None)

    def _look_at_task(self, spec: TableSpec, kind: str, cron: Cron, now_ms: int) -> int | None:
        """Queue a task if it is due. Returns when it is due next; None if it never is again."""
        due_ms = cron.next_after(self._since_ms(spec.name, kind))
        if due_ms is None or due_ms > now_ms:
            return due_ms
        run = enqueue(self._home, "task_run", {"table": spec.name, "type": kind}, SCHEDULE)
        self._since[spec.name, kind] = now_ms
        if run is None:
            _LOG.info("'%s' is due on '%s', but its last run is still incomplete.", kind, spec.name)
        return cron.next_after(now_ms)

    def _since_ms(self, table: str, kind: str) -> int:
        """Return the time of the newest scheduled run, else the time when this scheduler first saw the table."""
        if (table, kind) not in self._since:
            runs = self._home.context.catalog.runs.list(table, kind=kind)
            last = next((run for run in runs if run.source == SCHEDULE), None)
            self._since[table, kind] = epoch_ms(last.created_at) if last else self._home.context.now_ms()
        return self._since[table, kind]
