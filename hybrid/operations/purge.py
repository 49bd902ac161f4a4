"""Purges of a table: each commits what Kafka holds first and is recorded as a run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.catalog.definitions import Definition
from hybrid.errors import HybridError
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

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef

_WHERE = "--where"


def purge_table(home: Home, table: TableRef, erasure: Erasure) -> PurgeReport:
    """Purges a table; see `hybrid.api.table.Table.purge`. UsageError for an invalid condition.

    A condition cannot use the clock: what is purged must not depend on when the purge runs.
    """
    from hybrid.replace.purge.purge import purge

    spec = table.spec
    sql = row_condition(erasure.where, spec, _WHERE)
    reads, values = condition_words(erasure.where, spec, _WHERE)
    request = PurgeRequest(
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
    outside = _outside(home, table, request)
    if erasure.dry_run:
        return purge(home.table_context(table), request, outside)

    def work() -> PurgeReport:
        warnings = catch_up(home, table)
        takes_markers = spec.stream is None or not (warnings or _is_held(home, table))
        asked = replace(request, takes_markers=takes_markers)
        report = purge(home.table_context(table), asked, (*outside, *warnings))
        home.catalog.runs.forget_samples(table.name)
        return report

    report = home.run_recorded(table.name, "purge", work)
    if not home.catalog.forget_journal():
        home.progress.say("The catalog's journal could not be emptied while others read it: it is at the next purge.")
    return report


def _copy_words(home: Home, name: str, path: Path, asked: PurgeRequest) -> str | None:
    """Describes how many matching rows a dropped copy of the table has; None when it has none."""
    from hybrid.replace.purge.purge import purge

    options_words = f"`hybrid table undrop {path.name}` brings it back, `hybrid table drop {name} --purge` removes it"
    try:
        spec = home.spec_of(Definition(**json.loads((path / "definition.json").read_text(encoding="utf-8"))))
        sql = row_condition(asked.text, spec, _WHERE)
        reads, values = condition_words(asked.text, spec, _WHERE)
        trial = replace(asked, where=sql, reads=reads, values=values, dry_run=True)
        report = purge(TableContext(home.bench, spec, TableLayout(path)), trial)
    except (HybridError, OSError, ValueError, TypeError) as error:
        return f"the dropped copy {path.name}, which cannot be looked at ({error}); {options_words}"
    rows = sum(reading.matching for reading in report.before)
    return f"the dropped copy {path.name}, which has {counted(rows, 'such row')}: {options_words}" if rows else None


def _is_held(home: Home, table: TableRef) -> bool:
    """Whether a pause or a waiting connector leaves messages uncommitted in Kafka."""
    is_paused = table.name in home.catalog.serving.pauses()
    return (
        is_paused
        or TableConnectors(home, table).waits() is not None
        or TableConnectors(home, table).pause_offsets() is not None
    )


def _outside(home: Home, table: TableRef, asked: PurgeRequest) -> list[str]:
    """The places that a purge does not reach, in words."""
    copies = dropped_copies(home, table.name)
    places = [words for path in copies if (words := _copy_words(home, table.name, path, asked)) is not None]
    if table.spec.stream is not None:
        places.append(f"{table.spec.stream.words}: Kafka keeps messages as long as it is told to")
    places.append("files that jobs, connectors and flows have read, and plans that were written with -o")
    places.append("backups from before: hybrid backup list DIR shows their times, hybrid backup delete removes them")
    leftovers = {
        home.settings.spill: "what statements wrote out of memory: it goes when the server starts again",
        home.folder / "uploads": "uploaded files: they go with their job, or a day later",
    }
    places += [
        f"{folder.name}: {what}" for folder, what in leftovers.items() if folder.is_dir() and any(folder.iterdir())
    ]
    places.append("statements and errors in the run records, the lineage and the logs")
    return places
