"""The thread of a server whose tables are on an object store.

A server of the home that writes the warehouse brings mirror and store together once, as a crash may have left them
apart, and gives a sign of life. A server of any other home follows the store; it ingests nothing and runs no schedule.
With the setting `take_over_after_s` it stands by: it takes over when the sign of life stops. One that has only the
tables that are pinned to it brings the others first, while nobody writes, and looks for the sign again behind that.
"""

from __future__ import annotations

import logging
import threading
import time

from hybrid.catalog.catalog import CATALOG_ERRORS
from hybrid.errors import HybridError
from hybrid.home.home import Home
from hybrid.logs import Lasting
from hybrid.operations.warehouse.follow import WarehouseFollower
from hybrid.operations.warehouse.pull import pull_warehouse, take_over_warehouse
from hybrid.operations.warehouse.sync import sync_warehouse
from hybrid.operations.warehouse.writer_sign import SIGN_S, SignGiver, SignWatch
from hybrid.runtime.backoff import Backoff
from hybrid.store.mirror import Mirror, is_pulled_in_part, mirror_at
from hybrid.store.ownership import Claim

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
    """A thread that works in turns. `has_changed_hands`: whether the home writes now, or does no longer.

    `expects_take_over`: whether it may soon have to write, because a sign of life is overdue. `knows_tables`: whether
    the home has a table of the store, or knows that there is none.
    """

    turn_s = SIGN_S

    def __init__(self, home: Home, mirror: Mirror, stop: threading.Event) -> None:
        super().__init__(name="warehouse", daemon=True)
        self._home, self._mirror, self._ending = home, mirror, stop
        self._complaints = Lasting()
        self.has_changed_hands = self.expects_take_over = False
        self.knows_tables = True

    def run(self) -> None:
        """Work until stopped, or until the warehouse has changed hands."""
        backoff = Backoff(*_BACKOFF_S)
        while not self._ending.is_set() and not self.has_changed_hands:
            try:
                self.turn()
            except Exception as error:  # the thread goes on, as the server does
                self.complain(error)
                self._ending.wait(backoff.next_s())
                continue
            backoff = Backoff(*_BACKOFF_S)
            self._ending.wait(self.turn_s)

    def complain(self, error: Exception) -> None:
        """Log an error, once a minute."""
        if self._complaints.passes(type(error).__name__):
            words = " ".join(str(error).split())
            is_expected = isinstance(error, (HybridError, OSError, *CATALOG_ERRORS))
            _LOG.error("The warehouse at %s: %s", self._mirror.url, words, exc_info=not is_expected)

    def turn(self) -> None:
        """Do the work of one turn."""
        raise NotImplementedError


class Writer(WarehouseKeeper):
    """Gives a sign of life, and brings mirror and store together beside that until it is done once."""

    def __init__(self, home: Home, mirror: Mirror, stop: threading.Event) -> None:
        super().__init__(home, mirror, stop)
        self._sign = SignGiver(home, mirror)
        self._is_synced = False
        self._sync: threading.Thread | None = None

    def turn(self) -> None:
        """Give a sign; a sync that fails, or takes long, must not keep it back."""
        claim = self._mirror.ownership.look()
        if claim is None:  # this home claims the warehouse with its first table
            return
        if not self._mirror.ownership.is_mine(claim):
            _LOG.warning("%s writes %s. This server follows from now on.", claim.owner.words, self._mirror.url)
            self.has_changed_hands = True
            return
        self._sign.give()
        if not self._is_synced and (self._sync is None or not self._sync.is_alive()):
            self._sync = threading.Thread(target=self._try_sync, name="sync", daemon=True)
            self._sync.start()

    def _try_sync(self) -> None:
        try:
            if is_pulled_in_part(self._mirror.folder):  # a take-over was cut short: end it
                _LOG.warning(pull_warehouse(self._home, beside_server=True).sentence)
            report = sync_warehouse(self._home)
        except Exception as error:  # the next turn tries again
            self.complain(error)
            return
        if report.did_something:
            _LOG.warning(report.sentence)
        self._is_synced = True


class Standby(WarehouseKeeper):
    """Follows the store, and takes over if the home that writes is silent for long, where that is wanted."""

    def __init__(self, home: Home, mirror: Mirror, stop: threading.Event) -> None:
        super().__init__(home, mirror, stop)
        self.turn_s = home.settings.ingest_interval_s
        self._follower = WarehouseFollower(home)
        self.knows_tables = bool(home.definitions.names())
        after_s = home.settings.take_over_after_s
        self._watch = SignWatch(mirror, after_s) if after_s else None
        self._watched_at = time.monotonic()
        self._brought_all_at: int | None = None  # how many signs had been seen then

    def turn(self) -> None:
        """Follow, and look for the sign of life."""
        if self._watch is not None and time.monotonic() - self._watched_at >= self._watch.pause_s:
            self._watched_at = time.monotonic()
            claim = self._watch.silent_claim()
            if claim is not None and not self._follower.has_all:
                claim = self._bring_all(self._watch, claim)
            self.expects_take_over = self._watch.is_overdue
            if claim is not None:
                self._take_over(claim)
                return
            if self._brought_all_at not in (None, self._watch.signs_seen):
                self._brought_all_at = None
                self._follower.keep_pinned()
        self._follower.look()
        self.knows_tables = True

    def _bring_all(self, watch: SignWatch, claim: Claim) -> Claim | None:
        """Bring the tables of other servers, too; the claim of the home that is silent behind that still.

        The home that writes has all tables. Bringing them may take long: a home that is complete wins meanwhile.
        """
        owner, url, signs_seen = claim.owner.words, self._mirror.url, watch.signs_seen
        _LOG.warning("%s gives no sign of life. Bringing the tables of %s that other servers hold.", owner, url)
        self._follower.bring_all()
        self._brought_all_at = signs_seen
        return watch.silent_claim()

    def _take_over(self, claim: Claim) -> None:
        self._follower.look()  # what cannot be brought now would be missing from a warehouse that is this home's
        _LOG.warning("%s gives no sign of life. Taking over %s.", claim.owner.words, self._mirror.url)
        sign = SignGiver(self._home, self._mirror)
        report = take_over_warehouse(self._home, beside_server=True, expected=claim, claimed=sign.give)
        _LOG.warning(report.sentence)
        self.has_changed_hands = True
