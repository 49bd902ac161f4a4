"""The page of a table's segments: both halves as a list, in pages, filtered by half and state."""

from __future__ import annotations

from fastapi import APIRouter

from hybrid.serve.console.copies import copies_of
from hybrid.serve.console.page import Json, PageRequest, page

router = APIRouter(include_in_schema=False)
_ROWS = 100
_FILTERS = ("half", "state")


@page(router, "/ui/tables/{table}/segments", template="segments.html", title="Segments")
def segments_page(ask: PageRequest, table: str) -> Json:
    """The segments (`half`, `state`: only these; `from`: the number of the first one shown, from 0)."""
    name = ask.call("table_show", table=table)["name"]
    chosen = {key: ask.parameter(key) for key in _FILTERS}
    return {
        "table": name,
        **shown_segments(ask.call("segments", table=name), chosen, ask.parameter("from")),
        "copies": copies_of(
            ask.url, "segments", {"table": name}, cli=("segment", "list", name), python=f"hy.table({name!r}).segments()"
        ),
    }


def shown_segments(segments: list[Json], chosen: dict[str, str], first: str) -> dict[str, Json]:
    """A page of those segments that have the chosen values; an empty value chooses all."""
    kept = [found for found in segments if all(not value or found[key] == value for key, value in chosen.items())]
    start = min(int(first), len(kept)) if first.isascii() and first.isdecimal() and len(first) < 10 else 0
    start -= start % _ROWS
    return {
        "filter": chosen,
        "choices": {key: sorted({str(found[key]) for found in segments}) for key in _FILTERS},
        "total": len(segments),
        "matching": len(kept),
        "rows": sum(found["rows"] or 0 for found in kept),
        "bytes": sum(found["bytes"] or 0 for found in kept),
        "from": start,
        "earlier": max(0, start - _ROWS) if start else None,
        "later": start + _ROWS if start + _ROWS < len(kept) else None,
        "segments": kept[start : start + _ROWS],
    }
