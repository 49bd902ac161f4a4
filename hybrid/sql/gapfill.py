"""GAPFILL as in Pinot: adds rows for the time buckets in which an entity has none.

The SELECT that holds it becomes a SELECT over its own rows and the missing ones. A missing row has the values of the
entity's last row before it (`FILL_PREVIOUS_VALUE`), else defaults: 0, false, the epoch, an empty text.
Beyond Pinot: without TIMESERIESON all rows are one series, and times may be TIMESTAMP values and ISO 8601.
After docs.pinot.apache.org, "GapFill Function For Time-Series Dataset".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC

from sqlglot import exp

from hybrid.errors import VALIDATION, DataError, QueryError, SpecError
from hybrid.schema.dialect import PinotReader, canonical
from hybrid.schema.moment import parse_instant
from hybrid.schema.timeformat import TimeFormat, TimeKind
from hybrid.schema.types import DataType
from hybrid.sql.calls import ColumnTypes, call, is_temporal, literal_text, number, text
from hybrid.sql.infer import type_of
from hybrid.sql.nodes import nodes_of
from hybrid.sql.series import refuse_long

_NAME = "gapfill"
# Calls that `settle_gapfill` writes when the types of columns are known.
_DEFAULT, _TIME = "gapfilldefault", "gapfilltime"
_PREVIOUS, _EMPTY = "FILL_PREVIOUS_VALUE", "FILL_DEFAULT_VALUE"
_USAGE = (
    "GAPFILL(time, 'format', 'start', 'end', 'granularity', FILL(column, 'FILL_PREVIOUS_VALUE'), ..., "
    "TIMESERIESON(column, ...)), of which FILL and TIMESERIESON may be left out"
)
_MILLIS, _INSTANT = "1:MILLISECONDS:EPOCH", "TIMESTAMP"
_NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class _Gapfill:
    """A parsed call. Times are epoch milliseconds; `fills` are the ways of filling by lower-case column name."""

    time: exp.Expr
    format: str
    is_instant: bool
    start: int
    end: int
    step: int
    fills: dict[str, str]
    keys: tuple[str, ...]


def rewrite_gapfill(tree: exp.Query) -> exp.Query:
    """The statement with its GAPFILLs written as joins. QueryError (700) for one that cannot be read."""
    selects = [select for select in nodes_of(tree, exp.Select) if _call_in(select) is not None]
    for select in reversed(selects):  # inner ones first
        filled = _filled(select)
        if select is tree:
            tree = filled
        else:
            select.replace(filled)
    return tree


def settle_gapfill(tree: exp.Query, types: ColumnTypes) -> None:
    """Writes the default of each filled column and the times, by their types."""
    for node in [node for node in nodes_of(tree, exp.Anonymous) if node.name.lower() in _BY_TYPE]:
        node.replace(_BY_TYPE[node.name.lower()](node.expressions, types))


def _time(arguments: Sequence[exp.Expr], types: ColumnTypes) -> exp.Expr:
    """The time of an added row, from epoch milliseconds: a TIMESTAMP where those of other rows are."""
    millis, other, form = arguments
    target = text(_INSTANT) if type_of(other, types) is DataType.TIMESTAMP else form
    return _converted(millis, text(_MILLIS), target)


def _converted(time: exp.Expr, source: exp.Expr, target: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="DATETIMECONVERT", expressions=[time, source, target, text("1:MILLISECONDS")])


def _default(arguments: Sequence[exp.Expr], types: ColumnTypes) -> exp.Expr:
    kind = type_of(arguments[0], types)
    if kind in {DataType.STRING, DataType.JSON, DataType.BYTES}:
        return text("")
    if kind is DataType.BOOLEAN:
        return exp.false()
    return call("make_timestamp_ms", number(0)) if kind is DataType.TIMESTAMP else number(0)


_BY_TYPE = {_DEFAULT: _default, _TIME: _time}


def _call_in(select: exp.Select) -> exp.Anonymous | None:
    """The GAPFILL among the results of a SELECT."""
    calls = (item.unalias() for item in select.expressions)
    return next((node for node in calls if isinstance(node, exp.Anonymous) and canonical(node.name) == _NAME), None)


def _filled(select: exp.Select) -> exp.Select:
    found = _call_in(select)
    assert found is not None
    if select.args.get("group") or select.args.get("distinct"):
        raise _wrong("GROUP BY and DISTINCT stand in a query inside of FROM, or around this one")
    gapfill = _read(found)
    base, names = _base(select, found, gapfill)
    columns = [f"gap_{place}" for place in range(len(names))]
    known = {name.lower(): column for name, column in zip(names, columns, strict=True) if name is not None}
    missing = next((name for name in gapfill.fills if name not in known), None)
    if missing is not None:
        raise _wrong(f"FILL names '{missing}', which is none of the results")
    unfilled = next((name for name in known if name not in gapfill.fills), None)
    if unfilled is not None and not gapfill.keys:
        raise _wrong(f"TIMESERIESON names the columns of an entity, and without it FILL names '{unfilled}' as well")
    filled = _parse(_text(gapfill, known))
    cte = next(node for node in nodes_of(filled, exp.CTE) if node.alias == "gap_base")
    cte.set("this", base)
    outer = exp.select(
        *(
            exp.alias_(exp.column("gap_time" if name is None else column), _shown(item, name), quoted=True)
            for item, name, column in zip(select.expressions, names, columns, strict=False)
        )
    ).from_(filled.subquery("gap_rows"))
    for part in ("order", "limit", "offset"):
        if select.args.get(part) is not None:
            outer.set(part, select.args[part])
    return outer


def _shown(item: exp.Expr, name: str | None) -> str:
    """The name of a result."""
    if name is not None or isinstance(item, exp.Alias):
        return item.alias_or_name or str(name)
    time = item.expressions[0]
    return time.name if isinstance(time, exp.Column) else _NAME


def _base(select: exp.Select, found: exp.Anonymous, gapfill: _Gapfill) -> tuple[exp.Select, list[str | None]]:
    """The rows that are filled: their time, their order within a bucket, and columns; and the columns' names.

    The name of the time is None. Columns of TIMESERIESON that are no results come last.
    """
    base, names = select.copy(), list[str | None]()
    for part in ("order", "limit", "offset"):
        base.set(part, None)
    items: list[exp.Expr] = []
    for place, item in enumerate(select.expressions):
        if item.is_star or (not item.alias_or_name and item is not found):
            raise _wrong("the other results beside GAPFILL are columns, or have names (AS)")
        is_time = item.unalias() is found
        names.append(None if is_time else item.alias_or_name)
        value = exp.null() if is_time else item.unalias().copy()
        items.append(exp.alias_(value, f"gap_{place}"))
    for key in gapfill.keys:
        if key.lower() not in {(name or "").lower() for name in names}:
            names.append(key)
            items.append(exp.alias_(exp.column(key, quoted=True), f"gap_{len(names) - 1}"))
    raw = gapfill.time.find(exp.Column)
    # Of several rows in a bucket the last one in time is the previous row of what follows.
    order = raw.copy() if raw is not None and raw is not gapfill.time else exp.Literal.number(0)
    form, time = text(gapfill.format), gapfill.time.copy()
    millis = _converted(gapfill.time.copy(), form, text(_MILLIS))
    if gapfill.is_instant:
        time = _converted(time, form.copy(), text(_INSTANT))
    own = [exp.alias_(time, "gap_time"), exp.alias_(millis, "gap_ms"), exp.alias_(order, "gap_order")]
    base.set("expressions", [*own, *(item for item, name in zip(items, names, strict=True) if name is not None)])
    return base, names


def _text(gapfill: _Gapfill, columns: Mapping[str, str]) -> str:
    """The rows and the missing rows, over the CTE gap_base. `columns` are its columns by the names of results."""
    keys = [columns[key.lower()] for key in gapfill.keys]
    values = dict[str, str]()
    for name, column in columns.items():
        default = f"{_DEFAULT}(gap_last.{column})"
        previous = f"CASE WHEN gap_last.gap_ms IS NULL THEN {default} ELSE gap_last.{column} END"
        values[column] = previous if gapfill.fills.get(name) == _PREVIOUS else default
    values |= {key: f"gap_grid.{key}" for key in keys}
    named = list(values)
    last = "".join(f", ARG_MAX({column}, gap_order) AS {column}" for column in named if column not in keys)
    by, entities = ", ".join(["gap_ms", *keys]), ", ".join(keys)
    equal = "".join(f"gap_grid.{key} = gap_last.{key} AND " for key in keys)
    known = "".join(f" AND {key} IS NOT NULL" for key in keys)
    series = f"SELECT DISTINCT {entities} FROM gap_base WHERE gap_ms < {gapfill.end}{known}" if keys else "SELECT 1"
    times = f"generate_series({gapfill.start}, {gapfill.end - 1}, {gapfill.step})"
    at = f"{_TIME}(gap_grid.gap_at, gap_last.gap_time, {text(gapfill.format).sql()})"
    return f"""
        WITH gap_base AS MATERIALIZED (SELECT 1),
        gap_last AS (SELECT {by}, ANY_VALUE(gap_time) AS gap_time{last} FROM gap_base GROUP BY {by}),
        gap_series AS ({series})
        SELECT {", ".join(["gap_time", *named])} FROM gap_base
        WHERE gap_ms >= {gapfill.start} AND gap_ms < {gapfill.end}
        UNION ALL
        SELECT {", ".join([f"{at} AS gap_time", *(f"{values[column]} AS {column}" for column in named)])}
        FROM (SELECT {", ".join(["gap_at", *keys])} FROM {times} AS gap_times(gap_at) CROSS JOIN gap_series) AS gap_grid
        ASOF LEFT JOIN gap_last ON {equal}gap_grid.gap_at >= gap_last.gap_ms
        WHERE gap_last.gap_ms IS NULL OR gap_last.gap_ms < gap_grid.gap_at
    """


def _parse(sql: str) -> exp.Query:
    tree = PinotReader().parser().parse(PinotReader().tokenize(sql), sql)[0]
    assert isinstance(tree, exp.Query)
    return tree


def _read(node: exp.Anonymous) -> _Gapfill:
    """The arguments of a GAPFILL."""
    if len(node.expressions) < 5:
        raise _wrong(f"it is written {_USAGE}")
    time, *plain = node.expressions[:5]
    form, start, end, granularity = map(_constant, plain)
    fills, keys = dict[str, str](), list[str]()
    for argument in node.expressions[5:]:
        name = canonical(argument.name) if isinstance(argument, exp.Anonymous) else ""
        columns = [part for part in argument.iter_expressions() if isinstance(part, exp.Column)]
        if name == "fill" and len(argument.expressions) == 2 and len(columns) == 1:
            fills[columns[0].name.lower()] = _way(literal_text(argument.expressions[1]))
        elif name == "timeserieson" and columns and len(columns) == len(argument.expressions):
            keys += [column.name for column in columns]
        else:
            raise _wrong(f"'{argument.sql('duckdb')[:60]}' cannot be read; it is written {_USAGE}")
    if form is None or start is None or end is None or granularity is None:
        raise _wrong("the format, the start, the end and the granularity are constants, such as texts in quotes")
    return _times(time, form, (start, end, granularity), fills, tuple(keys))


def _constant(node: exp.Expr) -> str | None:
    """The text of a quoted or numeric literal, or of a TIMESTAMP, which a parameter may be; None for anything else."""
    if isinstance(node, exp.Cast) and is_temporal(node, {}):
        node = node.this
    return node.name if isinstance(node, exp.Literal) else None


def _times(
    time: exp.Expr, form: str, written: tuple[str, str, str], fills: dict[str, str], keys: tuple[str, ...]
) -> _Gapfill:
    start, end, granularity = written
    try:
        parsed = TimeFormat.parse(form, "GAPFILL", "format", DataType.STRING)
        step = TimeFormat.parse(f"{granularity}:EPOCH", "GAPFILL", "granularity").step_ns // _NS_PER_MS
        from_ms, to_ms = _instant(start, parsed), _instant(end, parsed)
    except (SpecError, DataError) as error:
        raise _wrong(str(error).removeprefix("GAPFILL: ").rstrip(".")) from None
    if step < 1 or from_ms >= to_ms:
        raise _wrong("the start lies before the end, and the granularity is a millisecond at least")
    refuse_long("GAPFILL", from_ms, to_ms - 1, step)
    return _Gapfill(time, form, parsed.kind is TimeKind.TIMESTAMP, from_ms, to_ms, step, fills, keys)


def _instant(written: str, form: TimeFormat) -> int:
    """Epoch milliseconds of a start or an end: a value of the format, else ISO 8601, in UTC without a zone."""
    try:
        return form.to_millis(written)
    except DataError:
        instant = parse_instant(written, UTC)
        if isinstance(instant, str):
            raise
        return instant


def _way(written: str | None) -> str:
    if written is None or written.upper() not in {_PREVIOUS, _EMPTY}:
        raise _wrong(f"FILL takes a column and '{_PREVIOUS}' or '{_EMPTY}'")
    return written.upper()


def _wrong(message: str) -> QueryError:
    return QueryError(f"GAPFILL: {message}.", pinot_code=VALIDATION)
