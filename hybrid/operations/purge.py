"""Purges of a table: each commits what Kafka holds first and is recorded as a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.catalog.definitions import Definition
from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import HybridError
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.layout import TableLayout
from hybrid.lake.table_context import TableContext
from hybrid.operations.connectors.run import TableConnectors
from hybrid.operations.erasure import Erasure
from hybrid.operations.ingestion import catch_up
from hybrid.operations.tables.drop import dropped_copies
from hybrid.progress import counted
from hybrid.replace.purge.report import PurgeReport
from hybrid.replace.purge.request import PurgeRequest
from hybrid.sql.row_sql import condition_words, row_condition
from hybrid.store.mirror import DEFINITION_FILE, half_keys, mirror_at

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.replace.purge.purged_store import PurgedStore

_WHERE = "--where"


@dataclass(frozen=True)
class CopyWithRows:
    """A dropped copy of a table with matching rows. `rows` None: it cannot be looked at, for the reason `error`."""

    path: Path
    rows: int | None
    error: str = ""

    @property
    def words(self) -> str:
        """What it has, as a phrase."""
        if self.rows is None:
            return f"the dropped copy {self.path.name}, which cannot be looked at ({self.error})"
        return f"the dropped copy {self.path.name}, which has {counted(self.rows, 'such row')}"


def purge_table(home: Home, table: TableRef, erasure: Erasure) -> PurgeReport:
    """Purges a table; see `hybrid.api.table.Table.purge`. UsageError for an invalid condition.

    A condition cannot use the clock: what is purged must not depend on when the purge runs.
    """
    from hybrid.replace.purge.purge import purge

    request = purge_request(home, table, erasure)
    outside = list(_outside(home, table, request))
    if erasure.dry_run:
        return purge(home.table_context(table), request, outside)
    report = run_purge(home, table, request, outside)
    if not home.catalog.forget_journal():
        home.progress.say("The catalog's journal could not be emptied while others read it: it is at the next purge.")
    return report


def purge_request(home: Home, table: TableRef, erasure: Erasure) -> PurgeRequest:
    """The request of a purge as the engine takes it. UsageError for an invalid condition."""
    sql, reads, values = _parsed(erasure.where, table.spec)
    return PurgeRequest(
        id=home.act_id("purge"),
        text=erasure.where,
        where=sql,
        reads=reads,
        values=values,
        undecided=erasure.undecided,
        reason=erasure.reason,
        user=erasure.user,
        dry_run=erasure.dry_run,
    )


def run_purge(home: Home, table: TableRef, request: PurgeRequest, outside: list[str]) -> PurgeReport:
    """Carries out a purge, recorded as a run."""
    from hybrid.replace.purge.purge import purge

    def work() -> PurgeReport:
        warnings = catch_up(home, table)
        takes_markers = table.spec.stream is None or not (warnings or _is_held(home, table))
        asked = replace(request, takes_markers=takes_markers)
        report = purge(home.table_context(table), asked, (*outside, *warnings))
        home.catalog.runs.forget_samples(table.name)
        return report

    return home.run_recorded(table.name, "purge", work)


def copies_with_rows(home: Home, name: str, where: str, undecided: bool) -> Iterator[CopyWithRows]:
    """The dropped copies of a table that have matching rows, or cannot be looked at."""
    from hybrid.replace.purge.purge import purge

    for path in dropped_copies(home, name):
        try:
            spec = home.spec_of(Definition(**json.loads((path / DEFINITION_FILE).read_text(encoding="utf-8"))))
            sql, reads, values = _parsed(where, spec)
            trial = PurgeRequest(new_act_id("purge"), where, sql, reads, values, undecided=undecided, dry_run=True)
            report = purge(TableContext(home.bench, spec, TableLayout(path)), trial)
            unseen = _unseen_of(path)
        except (HybridError, OSError, ValueError, TypeError) as error:
            yield CopyWithRows(path, None, str(error))
            continue
        rows = sum(reading.matching for reading in report.before)
        if rows or unseen:
            yield CopyWithRows(path, rows or None, unseen)


def _unseen_of(copy: Path) -> str:
    """Why a dropped copy does not show all rows that there are of it, in a warehouse on a store; else empty."""
    from hybrid.lake.lacking_rows import lacking_of_halves, lacking_of_plans, staged_prefix
    from hybrid.lake.store_refresh import pull_leftovers

    mirror, table, layout = mirror_at(copy), copy.name.partition("@")[0], TableLayout(copy)
    if mirror is None:
        return ""
    cut = [path for half in Half for path in pull_leftovers(layout.half(half))]
    cut += copy.glob("plans/**/*.parquet.*.part")
    if cut:
        return f"a pull that was cut short has left {cut[0].relative_to(copy)}"
    folders = [f"{table}/{key}" for key in half_keys(copy).values()]
    if (plans := staged_prefix(table, copy)) is not None:
        folders.append(plans)
    keys = [item.key for folder in folders for item in mirror.client.list_below(folder)]
    lacking = [*lacking_of_halves(table, copy, keys), *lacking_of_plans(table, copy, keys, busy=())]
    return f"it lacks {counted(len(lacking), 'file')} that the store has, such as {lacking[0]}" if lacking else ""


def _parsed(where: str, spec: TableSpec) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """A condition as Spark SQL, its columns, and its constants that are compared for equality."""
    return row_condition(where, spec, _WHERE), *condition_words(where, spec, _WHERE)


def _is_held(home: Home, table: TableRef) -> bool:
    """Whether a pause or a waiting connector leaves messages uncommitted in Kafka."""
    is_paused = table.name in home.catalog.serving.pauses()
    return (
        is_paused
        or TableConnectors(home, table).waits() is not None
        or TableConnectors(home, table).pause_offsets() is not None
    )


def purged_store(home: Home, name: str) -> PurgedStore | None:
    """The store of a table's warehouse, for what a purge does there; None in a warehouse of local folders."""
    from hybrid.replace.purge.purged_store import PurgedStore

    return PurgedStore.of(home.table_context(home.table(name)))


def copies_on_store(home: Home, name: str) -> set[str]:
    """The folders of halves on the warehouse's store that dropped copies of a table have."""
    return {key for path in dropped_copies(home, name) for key in half_keys(path).values()}


def _outside(home: Home, table: TableRef, asked: PurgeRequest) -> Iterator[str]:
    """The places that a purge does not reach, in words."""
    for copy in copies_with_rows(home, table.name, asked.text, asked.undecided):
        name = copy.path.name
        options = f"`hybrid table undrop {name}` brings it back, `hybrid table drop {name} --purge` removes it"
        yield f"{copy.words}: {options}"
    store = purged_store(home, table.name)
    if store is not None:
        yield from store.outside(copies_on_store(home, table.name))
    if table.spec.stream is not None:
        yield f"{table.spec.stream.words}: Kafka keeps messages as long as it is told to"
    yield "files that jobs, connectors and flows have read, and plans that were written with -o"
    yield (
        "backups from before: hybrid backup list DIR shows their times, hybrid backup delete removes them, and what "
        "killed backups left there (--surplus)"
    )
    for folder, what in leftovers(home).items():
        yield f"{folder.name}: {what}"
    yield "statements and errors in the run records, the lineage and the logs"


def leftovers(home: Home) -> dict[Path, str]:
    """The folders of a home that hold something which is neither a table's nor a record, and how it goes."""
    known = {
        home.settings.spill: "what statements wrote out of memory: it goes when the server starts again",
        home.folder / "uploads": "uploaded files: they go with their job, or a day later",
    }
    return {folder: what for folder, what in known.items() if folder.is_dir() and any(folder.iterdir())}
