"""The thread of a server whose tables are on an object store.

A server of the home that writes the warehouse brings mirror and store together once, as a crash may have left them
apart, and gives a sign of life. A server of any other home follows the store; it ingests nothing and runs no schedule.
With the setting `take_over_after_s` it stands by: it takes over when the sign of life stops.
"""

from __future__ import annotations

import logging
import threading
import time

from hybrid.catalog.catalog import CATALOG_ERRORS
from hybrid.errors import ConflictError, HybridError
from hybrid.home.home import Home
from hybrid.logs import Lasting
from hybrid.operations.warehouse.follow import WarehouseFollower
from hybrid.operations.warehouse.pull import pull_warehouse
from hybrid.operations.warehouse.sync import sync_warehouse
from hybrid.operations.warehouse.writer_sign import SIGN_S, SignWatch, give_sign
from hybrid.runtime.backoff import Backoff
from hybrid.store.mirror import Mirror, mirror_at

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


def warehouse_keeper(home: Home, stop: threading.Event, *, follows: bool) -> WarehouseKeeper | None:
    """The thread for a home whose tables are on a store; None for another home."""
    mirror = mirror_at(home.settings.warehouse)
    if mirror is None:
        return None
    return Standby(home, mirror, stop) if follows else Writer(home, mirror, stop)


class WarehouseKeeper(threading.Thread):
    """A thread that works in turns. `has_changed_hands`: whether the home writes now, or does no longer."""

    turn_s = SIGN_S

    def __init__(self, home: Home, mirror: Mirror, stop: threading.Event) -> None:
        super().__init__(name="warehouse", daemon=True)
        self._home, self._mirror, self._ending = home, mirror, stop
        self._complaints = Lasting()
        self.has_changed_hands = False

    def run(self) -> None:
        """Work until stopped, or until the warehouse has changed hands."""
        backoff = Backoff(*_BACKOFF_S)
        while not self._ending.is_set() and not self.has_changed_hands:
            try:
                self.turn()
            except Exception as error:  # the thread goes on, as the server does
                if self._complaints.passes(type(error).__name__):
                    words = " ".join(str(error).split())
                    is_expected = isinstance(error, (HybridError, OSError, *CATALOG_ERRORS))
                    _LOG.error("The warehouse at %s: %s", self._mirror.url, words, exc_info=not is_expected)
                self._ending.wait(backoff.next_s())
                continue
            backoff = Backoff(*_BACKOFF_S)
            self._ending.wait(self.turn_s)

    def turn(self) -> None:
        """Do the work of one turn."""
        raise NotImplementedError


class Writer(WarehouseKeeper):
    """Brings mirror and store together once, then gives a sign of life."""

    _is_synced = False

    def turn(self) -> None:
        """Sync, or give a sign."""
        if not self._home.definitions.names():  # this home claims the warehouse with its first table
            claim = self._mirror.ownership.look()
            if claim is not None and not self._mirror.ownership.is_mine(claim):
                _LOG.warning("Another home writes %s. This server follows from now on.", self._mirror.url)
                self.has_changed_hands = True
            return
        try:
            if not self._is_synced:
                report = sync_warehouse(self._home)
                if report.did_something:
                    _LOG.warning(report.sentence)
                self._is_synced = True
            give_sign(self._home, self._mirror)
        except ConflictError as error:
            if not self._mirror.ownership.is_mine():
                _LOG.warning("%s This server follows from now on.", error)
                self.has_changed_hands = True
                return
            raise


class Standby(WarehouseKeeper):
    """Follows the store, and takes over if the home that writes is silent for long, where that is wanted."""

    def __init__(self, home: Home, mirror: Mirror, stop: threading.Event) -> None:
        super().__init__(home, mirror, stop)
        self.turn_s = home.settings.ingest_interval_s
        self._follower = WarehouseFollower(home)
        after_s = home.settings.take_over_after_s
        self._watch = SignWatch(mirror, after_s) if after_s else None
        self._watched_at = time.monotonic()

    def turn(self) -> None:
        """Follow, and look for the sign of life."""
        if self._watch is not None and time.monotonic() - self._watched_at >= SIGN_S:
            self._watched_at = time.monotonic()
            if self._watch.is_silent():
                self._take_over()
                return
        self._follower.look()

    def _take_over(self) -> None:
        _LOG.warning("The server that writes %s gives no sign of life. Taking over.", self._mirror.url)
        _LOG.warning(pull_warehouse(self._home, take_over=True, beside_server=True).sentence)
        self.has_changed_hands = True
