"""Checks of a home whose tables are on an object store: who writes them, and whether mirror and store are the same."""

from __future__ import annotations

from hybrid.doctor.findings import Checkup, Severity
from hybrid.errors import SpecError, StoreError
from hybrid.operations.warehouse.mirrored_plans import plans_apart
from hybrid.operations.warehouse.sync import HalfMirror, WarehouseStatus, sync_warehouse, warehouse_status
from hybrid.store.mirror import is_pulled_in_part, mirror_at

_CHECK = "warehouse"
_SHOWN = 3


def check_warehouse(checkup: Checkup) -> None:
    """Checks the store against the home's folder. Nothing for a home without a store."""
    folder = checkup.home.settings.warehouse
    try:
        if mirror_at(folder) is None:
            return
        status = warehouse_status(checkup.home.context)
    except (SpecError, StoreError) as error:
        checkup.found(Severity.ERROR, _CHECK, str(error), hint=error.hint)
        return
    if status.claim is None:
        if status.halves:
            message = f"{status.url} does not have the tables of this home yet."
            checkup.found(Severity.WARNING, _CHECK, message, hint="hybrid warehouse push")
    elif not status.is_mine:
        message = f"{status.url}: {status.words}. Tables here can be read only."
        checkup.found(Severity.NOTE, _CHECK, message, hint="hybrid warehouse pull (brings what is new)")
    elif is_pulled_in_part(folder):
        message = f"{status.url} is this home's to write, but a take-over did not end."
        checkup.found(Severity.WARNING, _CHECK, message, hint="hybrid warehouse pull --take-over")
    else:
        _check_halves(checkup, status)
        _check_plans(checkup, status.url)


def _check_halves(checkup: Checkup, status: WarehouseStatus) -> None:
    apart = [half for half in status.halves if half.state != "SAME"]
    if apart:
        words = "; ".join(map(_words, apart))
        message = f"Home and {status.url} are not the same: {words}. The next commit to a half mends it, too."
        checkup.found(Severity.WARNING, _CHECK, message, mend=lambda: sync_warehouse(checkup.home.context).sentence)


def _check_plans(checkup: Checkup, url: str) -> None:
    """Reports plans that the store does not list as the home has them, and those that the home has lost."""
    home = checkup.home.context
    apart = [plan for name in home.definitions.names() for plan in plans_apart(home, name)]
    if apart:
        shown = ", ".join(apart[:_SHOWN]) + (f" and {len(apart) - _SHOWN} more" if len(apart) > _SHOWN else "")
        message = f"Home and {url} do not have the same plans: {shown}."
        checkup.found(Severity.WARNING, _CHECK, message, mend=lambda: sync_warehouse(home).sentence)


def _words(half: HalfMirror) -> str:
    there = "nothing" if half.store_version is None else f"version {half.store_version}"
    return f"{half.half} of '{half.table}' has version {half.version} here and {there} there"
