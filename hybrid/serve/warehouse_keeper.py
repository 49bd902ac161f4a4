"""The thread of a server whose tables are on an object store.

A server of the home that writes the warehouse brings mirror and store together once: a crash may have left them apart.
A server of any other home follows the store; it ingests nothing and runs no schedule.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from hybrid.errors import HybridError
from hybrid.home.home import Home
from hybrid.logs import Lasting
from hybrid.operations.warehouse.follow import WarehouseFollower
from hybrid.operations.warehouse.sync import sync_warehouse
from hybrid.runtime.backoff import Backoff
from hybrid.store.mirror import mirror_at

_LOG = logging.getLogger(__name__)
_BACKOFF_S = (0.5, 5.0)


def reads_only(home: Home, stop: threading.Event) -> bool:
    """Whether another home writes this one's warehouse. Waits until the store says so, or `stop` is set."""
    mirror = mirror_at(home.settings.warehouse)
    if mirror is None:
        return False
    complaints, backoff = Lasting(), Backoff(*_BACKOFF_S)
    while not stop.is_set():
        try:
            claim = mirror.ownership.look()
            return claim is not None and not mirror.ownership.is_mine(claim)
        except HybridError as error:
            if complaints.passes("ownership"):
                _LOG.error("It is not known which home writes %s: %s", mirror.url, error)
            stop.wait(backoff.next_s())
    return True


class WarehouseKeeper(threading.Thread):
    """Follows the store, or brings both together once."""

    def __init__(self, home: Home, stop: threading.Event, *, follows: bool) -> None:
        super().__init__(name="warehouse", daemon=True)
        self._home, self._stop, self._follows = home, stop, follows
        self._complaints = Lasting()

    def run(self) -> None:
        """Work until stopped, or until mirror and store are the same."""
        work: Callable[[], object] = WarehouseFollower(self._home).look if self._follows else self._sync
        backoff = Backoff(*_BACKOFF_S)
        while not self._stop.is_set():
            try:
                work()
            except (HybridError, OSError) as error:
                if self._complaints.passes(type(error).__name__):
                    _LOG.error("The warehouse cannot be followed: %s", " ".join(str(error).split()))
                self._stop.wait(backoff.next_s())
                continue
            if not self._follows:
                return
            backoff = Backoff(*_BACKOFF_S)
            self._stop.wait(self._home.settings.ingest_interval_s)

    def _sync(self) -> None:
        report = sync_warehouse(self._home)
        if report.did_something:
            _LOG.warning(report.sentence)


def warehouse_keeper(home: Home, stop: threading.Event, *, follows: bool) -> WarehouseKeeper | None:
    """The thread for a home whose tables are on a store; None for another one, or before its first table."""
    mirror = mirror_at(home.settings.warehouse)
    if mirror is None or (not follows and not home.definitions.names()):
        return None
    return WarehouseKeeper(home, stop, follows=follows)
