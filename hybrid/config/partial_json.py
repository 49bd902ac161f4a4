"""Reads Pinot's PARTIAL upsert, and upsert by several comparison columns.

The checks are those of Pinot's TableConfigUtils, and one more: the column's type must support the strategy, also the
default strategy. Pinot fails there at the first message.
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.config.table_config import Partial, Strategy
from hybrid.schema.document import Section
from hybrid.schema.named_column import column
from hybrid.schema.schema import FieldKind, FieldSpec, Schema
from hybrid.schema.types import DataType

STRATEGIES, DEFAULT_STRATEGY, MERGER = (
    "partialUpsertStrategies",
    "defaultPartialUpsertStrategy",
    "partialUpsertMergerClass",
)
_NUMBERS = {DataType.INT, DataType.LONG, DataType.FLOAT, DataType.DOUBLE, DataType.BIG_DECIMAL}
# In these types "higher" means the same to every engine.
COMPARABLE = {*_NUMBERS, DataType.TIMESTAMP, DataType.STRING}
_NULLS = (
    'Set "tableIndexConfig": {"nullHandlingEnabled": true}: else a missing value is stored as the column\'s default'
)


def parse_partial(section: Section, schema: Schema, comparison: Sequence[str], null_handling: bool) -> Partial:
    """The strategies of PARTIAL upsert. SpecError for a strategy that its column does not support."""
    if not null_handling:
        section.fail("mode", f"'PARTIAL' needs nulls. {_NULLS}, and would overwrite what is there.")
    if section.has(MERGER):
        section.fail(MERGER, f"cannot be honoured: classes of Pinot are not run here. Write {STRATEGIES}.")
    default = Strategy(section.choice(DEFAULT_STRATEGY, tuple(Strategy), Strategy.OVERWRITE))
    by_column, strategies = section.section(STRATEGIES), dict[str, Strategy]()
    for name in by_column.doc:
        field = column(by_column, name, name, schema)
        if name in schema.primary_key or name in comparison:
            what = "part of the primary key" if name in schema.primary_key else "a comparison column"
            by_column.fail(name, f"'{name}' is {what}, which no strategy changes. Remove it.")
        strategies[name] = Strategy(by_column.choice(name, tuple(Strategy)))
        _check_fits(by_column, name, field, strategies[name])
    for field in schema.fields:
        if field.name not in (*schema.primary_key, *comparison, *strategies):
            _check_fits(section, DEFAULT_STRATEGY, field, default)
    return Partial(strategies, default)


def check_several(
    section: Section, schema: Schema, names: Sequence[str], time_column: str | None, null_handling: bool
) -> None:
    """SpecError unless a row can have a value in exactly one of these comparison columns."""
    key = "comparisonColumns"
    if not null_handling:
        section.fail(key, f"several need nulls. {_NULLS}, and every row would have all of them.")
    always = {name: "part of the primary key" for name in schema.primary_key}
    always |= {field.name: "never null" for field in schema.fields if field.not_null}
    always |= {time_column: "the time column"} if time_column else {}
    for name in names:
        if name in always:
            message = f"'{name}' is {always[name]}, which every row has: no row could have another of {list(names)}."
            section.fail(key, message, hint="A row has a value in just one of several comparison columns.")


def _check_fits(section: Section, key: str, field: FieldSpec, strategy: Strategy) -> None:
    why = _misfit(field, strategy)
    if why is not None:
        section.fail(key, f"{strategy} cannot bring the values of '{field.name}' together: {why}.")


def _misfit(field: FieldSpec, strategy: Strategy) -> str | None:
    """Why a column does not support a strategy; None when it does."""
    if strategy in {Strategy.APPEND, Strategy.UNION}:
        if field.single_value:
            return "it holds one value, and lists are what is put together"
        return "BYTES have no order" if strategy is Strategy.UNION and field.data_type is DataType.BYTES else None
    if strategy not in {Strategy.INCREMENT, Strategy.MAX, Strategy.MIN}:
        return None
    if not field.single_value:
        return "it holds several values"
    if strategy is Strategy.INCREMENT:
        if field.kind is FieldKind.DATE_TIME:
            return "it is a dateTime field, and times are not added up"
        return None if field.data_type in _NUMBERS else f"it is {field.data_type} and no number"
    fits = field.data_type in COMPARABLE or field.data_type is DataType.BOOLEAN
    return None if fits else f"it is {field.data_type} and has no order"
