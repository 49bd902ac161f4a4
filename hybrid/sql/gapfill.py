"""GAPFILL as in Pinot: adds rows for the time buckets in which an entity has none.

The SELECT that holds it becomes a SELECT over its own rows and the missing ones. A missing row has the values of the
entity's last row before it (`FILL_PREVIOUS_VALUE`), else defaults: 0, false, the epoch, an empty text.
After docs.pinot.apache.org, "GapFill Function For Time-Series Dataset".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from hybrid.errors import DataError, QueryError, SpecError
from hybrid.schema.dialect import PinotReader, canonical
from hybrid.schema.timeformat import TimeFormat
from hybrid.schema.types import DataType
from hybrid.sql.calls import ColumnTypes, call, literal_text, number, text
from hybrid.sql.infer import type_of
from hybrid.sql.series import VALIDATION, refuse_long

_NAME, _DEFAULT = "gapfill", "gapfilldefault"
_PREVIOUS, _EMPTY = "FILL_PREVIOUS_VALUE", "FILL_DEFAULT_VALUE"
_USAGE = (
    "GAPFILL(time, 'format', 'start', 'end', 'granularity', FILL(column, 'FILL_PREVIOUS_VALUE'), ..., "
    "TIMESERIESON(column, ...))"
)
_MILLIS = "1:MILLISECONDS:EPOCH"
_NS_PER_MS = 1_000_000


@dataclass(frozen=True)
class _Gapfill:
    """A parsed call. Times are epoch milliseconds; `fills` are the ways of filling by lower-case column name."""

    time: exp.Expr
    format: str
    start: int
    end: int
    step: int
    fills: dict[str, str]
    keys: tuple[str, ...]


def rewrite_gapfill(tree: exp.Query) -> exp.Query:
    """The statement with its GAPFILLs written as joins. QueryError (700) for one that cannot be read."""
    selects = [select for select in tree.find_all(exp.Select) if _call_in(select) is not None]
    for select in reversed(selects):  # inner ones first
        filled = _filled(select)
        if select is tree:
            tree = filled
        else:
            select.replace(filled)
    return tree


def put_defaults(tree: exp.Query, types: ColumnTypes) -> None:
    """Writes the default of each filled column, by its type."""
    for node in [node for node in tree.find_all(exp.Anonymous) if node.name.lower() == _DEFAULT]:
        node.replace(_default(type_of(node.expressions[0], types)))


def _default(kind: DataType | None) -> exp.Expr:
    if kind in {DataType.STRING, DataType.JSON, DataType.BYTES}:
        return text("")
    if kind is DataType.BOOLEAN:
        return exp.false()
    return call("make_timestamp_ms", number(0)) if kind is DataType.TIMESTAMP else number(0)


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
    filled = _parse(_text(gapfill, known))
    cte = next(node for node in filled.find_all(exp.CTE) if node.alias == "gap_base")
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
    millis = exp.Anonymous(
        this="DATETIMECONVERT",
        expressions=[gapfill.time.copy(), *map(text, (gapfill.format, _MILLIS, "1:MILLISECONDS"))],
    )
    own = [
        exp.alias_(gapfill.time.copy(), "gap_time"), exp.alias_(millis, "gap_ms"), exp.alias_(order, "gap_order"),
    ]  # fmt: skip
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
    by = ", ".join(["gap_ms", *keys])
    entities = ", ".join(keys)
    equal = " AND ".join(f"gap_grid.{key} = gap_last.{key}" for key in keys)
    known = " AND ".join(f"{key} IS NOT NULL" for key in keys)
    times = f"generate_series({gapfill.start}, {gapfill.end - 1}, {gapfill.step})"
    written = f"DATETIMECONVERT(gap_grid.gap_at, '{_MILLIS}', {text(gapfill.format).sql()}, '1:MILLISECONDS')"
    return f"""
        WITH gap_base AS MATERIALIZED (SELECT 1),
        gap_last AS (SELECT {by}{last} FROM gap_base GROUP BY {by}),
        gap_key AS (SELECT DISTINCT {entities} FROM gap_base WHERE gap_ms < {gapfill.end} AND {known})
        SELECT gap_time, {", ".join(named)} FROM gap_base WHERE gap_ms >= {gapfill.start} AND gap_ms < {gapfill.end}
        UNION ALL
        SELECT {written} AS gap_time, {", ".join(f"{values[column]} AS {column}" for column in named)}
        FROM (SELECT gap_at, {entities} FROM {times} AS gap_series(gap_at) CROSS JOIN gap_key) AS gap_grid
        ASOF LEFT JOIN gap_last ON {equal} AND gap_grid.gap_at >= gap_last.gap_ms
        WHERE gap_last.gap_ms IS NULL OR gap_last.gap_ms < gap_grid.gap_at
    """


def _parse(sql: str) -> exp.Query:
    tree = PinotReader().parser().parse(PinotReader().tokenize(sql), sql)[0]
    assert isinstance(tree, exp.Query)
    return tree


def _read(node: exp.Anonymous) -> _Gapfill:
    """The arguments of a GAPFILL."""
    if len(node.expressions) < 6:
        raise _wrong(f"it is written {_USAGE}")
    time, *plain = node.expressions[:5]
    form, start, end, granularity = (literal_text(argument) for argument in plain)
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
        raise _wrong("the format, the start, the end and the granularity are texts in quotes")
    if not keys:
        raise _wrong(f"TIMESERIESON names the columns of an entity; it is written {_USAGE}")
    return _times(time, form, (start, end, granularity), fills, tuple(keys))


def _times(
    time: exp.Expr, form: str, written: tuple[str, str, str], fills: dict[str, str], keys: tuple[str, ...]
) -> _Gapfill:
    start, end, granularity = written
    try:
        parsed = TimeFormat.parse(form, "GAPFILL", "format", DataType.STRING)
        step = TimeFormat.parse(f"{granularity}:EPOCH", "GAPFILL", "granularity").step_ns // _NS_PER_MS
        from_ms, to_ms = parsed.to_millis(start), parsed.to_millis(end)
    except (SpecError, DataError) as error:
        raise _wrong(str(error).removeprefix("GAPFILL: ").rstrip(".")) from None
    if step < 1 or from_ms >= to_ms:
        raise _wrong("the start lies before the end, and the granularity is a millisecond at least")
    refuse_long("GAPFILL", from_ms, to_ms - 1, step)
    return _Gapfill(time, form, from_ms, to_ms, step, fills, keys)


def _way(written: str | None) -> str:
    if written is None or written.upper() not in {_PREVIOUS, _EMPTY}:
        raise _wrong(f"FILL takes a column and '{_PREVIOUS}' or '{_EMPTY}'")
    return written.upper()


def _wrong(message: str) -> QueryError:
    return QueryError(f"GAPFILL: {message}.", pinot_code=VALIDATION)
