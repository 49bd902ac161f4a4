"""Examines a home: runs the checks and, on request, repairs what is safe to repair. No Spark."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.doctor.backfills import check_backfills
from hybrid.doctor.connectors import check_connectors
from hybrid.doctor.definitions import check_definition
from hybrid.doctor.findings import Checkup, Finding
from hybrid.doctor.halves import check_halves
from hybrid.doctor.leftovers import check_leftovers, check_parts
from hybrid.doctor.machine import check_machine
from hybrid.doctor.records import check_catalog
from hybrid.doctor.replacements import check_replacements
from hybrid.doctor.streams import StreamChecks
from hybrid.doctor.warehouse import check_warehouse
from hybrid.errors import NotFoundError

if TYPE_CHECKING:
    from hybrid.api.hybrid import Hybrid


def examine(home: Hybrid, table: str | None = None, *, repair: bool = False) -> list[Finding]:
    """The findings in a home, or in one table of it, in the order of the checks; empty when all is well.

    `repair` repairs what is safe to repair: a damaged catalog or definition, and leftovers of dead processes. It never
    changes data. NotFoundError when the warehouse has no folder `table`.
    """
    names = _folders(home)
    if table is not None and table not in names:
        is_remote = table in _remote_names(home)
        raise home.context.unknown_table(table) if is_remote else NotFoundError.named("Table", table, names)
    checkup = Checkup(home, repair=repair)
    if table is None:
        home.context.progress.say("Checking the machine and the catalog.")
        check_machine(checkup)
        with checkup.surviving("catalog"):
            check_catalog(checkup)
        with checkup.surviving("warehouse"):
            check_warehouse(checkup)
        with checkup.surviving("part"):
            check_parts(checkup, chain(home.home.glob("*.part"), (home.home / "kafka").glob("*.part")))
    streams = StreamChecks(checkup)
    for name in names if table is None else [table]:
        home.context.progress.say(f"Checking table '{name}'.")
        _check_table(checkup, streams, name)
    return checkup.findings


def _check_table(checkup: Checkup, streams: StreamChecks, name: str) -> None:
    with checkup.surviving("definition", name):
        spec = check_definition(checkup, name)
        if spec is not None:
            halves = check_halves(checkup, spec)
            if Half.REALTIME in halves:
                with checkup.surviving("stream", name):
                    streams.check(spec, halves[Half.REALTIME].realtime)
            if spec.connectors and len(halves) == len(spec.halves):
                with checkup.surviving("connector", name):
                    check_connectors(checkup, name)
            if Half.OFFLINE in halves:
                with checkup.surviving("backfill", name):
                    check_backfills(checkup, name)
                with checkup.surviving("replacement", name):
                    check_replacements(checkup, name)
    check_leftovers(checkup, name)


def _folders(home: Hybrid) -> list[str]:
    """The names of the warehouse's folders: tables, and remains of tables."""
    warehouse = home.settings.warehouse
    if not warehouse.is_dir():
        return []
    folders = [path.name for path in warehouse.iterdir() if path.is_dir() and not path.name.startswith(".")]
    return sorted(set(folders) - _remote_names(home))


def _remote_names(home: Hybrid) -> frozenset[str]:
    """Tables that other query servers have: what they left here goes by itself, or they are being brought."""
    return home.context.remote.names() - set(home.context.definitions.names())
