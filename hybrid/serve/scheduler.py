"""Puts scheduled tasks into the queue when their time has come: at most one incomplete run per table and type."""

from __future__ import annotations

import logging

from hybrid.api import Hybrid
from hybrid.errors import HybridError
from hybrid.plain import epoch_ms
from hybrid.schedules import SCHEDULE
from hybrid.spec.cron import Cron
from hybrid.spec.table_config import TableSpec
from hybrid.tasks import crons_of
from hybrid.workqueue import enqueue

_LOG = logging.getLogger(__name__)


class Scheduler:
    """The schedules of a home. What came due while no server ran is run once, when one runs again."""

    def __init__(self, home: Hybrid) -> None:
        self._home = home
        self._since: dict[tuple[str, str], int] = {}

    def look(self) -> None:
        """Queues what is due now. A table that cannot be read is logged and left alone."""
        for name in self._home.table_names():
            try:
                self._look_at(self._home.spec(name))
            except HybridError as error:
                _LOG.warning("The schedule of '%s' cannot be read: %s", name, error)

    def _look_at(self, spec: TableSpec) -> None:
        for kind, cron in crons_of(spec).items():
            self._look_at_task(spec, kind, cron)

    def _look_at_task(self, spec: TableSpec, kind: str, cron: Cron) -> None:
        due_ms = cron.next_after(self._since_ms(spec.name, kind))
        now_ms = self._home.now_ms()
        if due_ms is None or due_ms > now_ms:
            return
        run = enqueue(self._home, "task_run", {"table": spec.name, "type": kind}, SCHEDULE)
        self._since[spec.name, kind] = now_ms
        if run is None:
            _LOG.info("'%s' is due on '%s', but its last run is still incomplete.", kind, spec.name)

    def _since_ms(self, table: str, kind: str) -> int:
        """When the schedule was last served: its newest scheduled run; else when this scheduler first saw the table."""
        if (table, kind) not in self._since:
            runs = self._home.catalog.runs.list(table, kind=kind)
            last = next((run for run in runs if run.source == SCHEDULE), None)
            self._since[table, kind] = epoch_ms(last.created_at) if last else self._home.now_ms()
        return self._since[table, kind]
