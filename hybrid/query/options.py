"""Pinot's query options that change an answer: some are applied, the others give a warning.

The names are those of QueryOptionKey in Pinot's CommonConstants. Options that only steer how Pinot's servers work are
ignored: the answer is the same without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from hybrid.config.table_config import TableSpec
from hybrid.errors import VALIDATION, QueryError, suggestion
from hybrid.query.result import QueryResult
from hybrid.sql.vocabulary import option_meant, refuse_misspelled_options

ENGINE_OPTION = "engine"
PLAN_OPTION = "plan"  # shows a table as it will be when this plan of a backfill has run
AS_OF_OPTION = "asof"  # answers at a revision or a moment; see `hybrid.query.time_travel`
DROP_RESULTS, NULLS, SKIP_UPSERT = "dropResults", "enableNullHandling", "skipUpsert"
_WHOLE = "no group, row or segment is left out of an answer"
_BOUNDS = "the server's own bounds count: query_rows_max, query_result_bytes_max"
# A number or a mode always gives a warning; a boolean only if it is true.
_WITHOUT_EFFECT = {
    **dict.fromkeys(
        (
            "numGroupsLimit", "errorOnNumGroupsLimit", "minSegmentGroupTrimSize", "minServerGroupTrimSize",
            "minBrokerGroupTrimSize", "mseMinGroupTrimSize", "groupTrimThreshold", "groupTrimSize",
            "maxRowsInJoin", "joinOverflowMode", "maxRowsInWindow", "windowOverflowMode", "multiStageLeafLimit",
            "useLiteMode", "liteModeServerStageLimit", "filteredAggregationsSkipEmptyGroups", "sampler",
            "tableSampler",
        ),
        _WHOLE,
    ),
    **dict.fromkeys(("maxServerResponseSizeBytes", "maxQueryResponseSizeBytes"), _BOUNDS),
    **dict.fromkeys(("getCursor", "cursorNumRows"), "an answer is returned whole; write LIMIT and OFFSET"),
    "skipUpsertView": "an answer is of one revision of the table",
}  # fmt: skip
_BY_NAME = {name.lower(): name for name in _WITHOUT_EFFECT}


class Engine(StrEnum):
    """The engine that runs a statement's plan."""

    DUCKDB = "duckdb"
    SPARK = "spark"


Specs = Callable[[], Sequence[TableSpec]]


def engine_of(options: Mapping[str, str]) -> Engine:
    """The engine that a statement names, by default DuckDB. QueryError (700) for another name."""
    written = options.get(ENGINE_OPTION, Engine.DUCKDB)
    try:
        return Engine(written.strip().lower())
    except ValueError:
        message = f"engine is duckdb or spark, not '{written[:40]}'.{suggestion(written.lower(), list(Engine))}"
        raise QueryError(message, pinot_code=VALIDATION) from None


def refuse_request_options(options: Mapping[str, str], keys: Iterable[str] = ()) -> None:
    """QueryError (700) for options of a request, by lower-case name, that count in statements only, or misspelt ones.

    `keys` are the other keys of its body and URL: an option is none of them.
    """
    refuse_misspelled_options(options)
    for key in keys:
        if (meant := option_meant(key)) is not None:
            message = f"'{key}' beside 'sql' has no effect."
            raise QueryError(message, pinot_code=VALIDATION, hint=f"Write it in the statement: SET {meant} = '...';")
    for name in (ENGINE_OPTION, PLAN_OPTION):
        if name in options:
            message = f"queryOptions: '{name}' counts in the statement only."
            raise QueryError(message, pinot_code=VALIDATION, hint=f"Write it there: SET {name} = '...'; SELECT ...")


def apply_options(result: QueryResult, options: Mapping[str, str], specs: Specs) -> QueryResult:
    """Applies a statement's or a request's options, by lower-case name; `specs` returns the specs of its tables."""
    if not options:
        return result
    warnings = tuple(warning for warning in option_warnings(options, specs) if warning not in result.warnings)
    rows = () if drops_rows(options) else result.rows
    if not warnings and rows is result.rows:
        return result
    return replace(result, rows=rows, warnings=(*result.warnings, *warnings))


def drops_rows(options: Mapping[str, str]) -> bool:
    """Whether the options, by lower-case name, ask for columns without rows."""
    return _is_on(options, DROP_RESULTS)


def option_warnings(options: Mapping[str, str], specs: Specs) -> Iterator[str]:
    """A warning for each option that would change Pinot's answer and does not change this one."""
    for key, value in options.items():
        name = _BY_NAME.get(key)
        if name is not None and value.strip().lower() not in ("", "false"):
            yield f"Option {name} has no effect: {_WITHOUT_EFFECT[name]}."
    yield from _null_warnings(options, specs)
    if _is_on(options, SKIP_UPSERT) and any(spec.upsert is not None for spec in specs()):
        yield f"Option {SKIP_UPSERT} has no effect: of each key the row that counts is shown."


def _null_warnings(options: Mapping[str, str], specs: Specs) -> Iterator[str]:
    written = options.get(NULLS.lower())
    if written is None:
        return
    is_on = written.strip().lower() == "true"
    for spec in specs():
        if spec.null_handling is not is_on:
            has = "has no null handling" if is_on else "has null handling"
            yield f"Option {NULLS} has no effect: table '{spec.name}' {has}, by nullHandlingEnabled of its config."


def _is_on(options: Mapping[str, str], name: str) -> bool:
    return options.get(name.lower(), "").strip().lower() == "true"
