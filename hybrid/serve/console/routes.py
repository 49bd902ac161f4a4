"""The routers of the console's pages. A new page adds its own here.

A name and a word never share a place in the paths: whatever a table is called, its pages are reached.
"""

from __future__ import annotations

from hybrid.serve.console import (
    accounts_page,
    backfill_page,
    backfills,
    definition_page,
    ingestion,
    lag,
    new_table,
    overview,
    query_page,
    replacements,
    run_page,
    segments,
    sign_in,
    static_files,
    stream_reset,
    table_changes,
    tasks,
    timeline,
)

_PAGES = (
    static_files,
    sign_in,
    overview,
    query_page,
    run_page,
    segments,
    accounts_page,
    new_table,
    table_changes,
    timeline,
    definition_page,
    backfills,
    backfill_page,
    replacements,
    ingestion,
    stream_reset,
    lag,
    tasks,
)
ROUTERS = tuple(module.router for module in _PAGES)
