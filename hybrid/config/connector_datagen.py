"""Reads the config of Feldera's `datagen`. After docs.feldera.com/connectors/sources/datagen.

Whether its values fit the columns is checked when the table's definition is read, before the table is created.
"""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.config.connectors import Datagen, DatagenField, DatagenPlan, DatagenStrategy
from hybrid.config.datagen_values import value_maker
from hybrid.config.table_config import TableSpec
from hybrid.errors import suggestion
from hybrid.schema.document import Section, shown
from hybrid.schema.schema import FieldSpec

_KEYS = {"plan", "seed", "workers", "transaction_size"}
_PLAN_KEYS = {"limit", "rate", "fields", "worker_chunk_size"}
_FIELD_KEYS = {"strategy", "range", "scale", "values", "null_percentage", "e"}
_NESTED = ("fields", "key")
_VALUE = "value"


def parse_datagen(config: Section) -> Datagen:
    """The plans and the seed of a `datagen` config."""
    sections = list(config.sections("plan"))
    plans = tuple(_plan(section) for section in sections)
    for position, plan in enumerate(plans[:-1]):
        if plan.limit is None:
            config.fail(f"plan[{position}].limit", "is missing: this plan never ends, and the next one never begins.")
    return Datagen(plans or Datagen().plans, config.whole("seed", 0) if config.doc.get("seed") is not None else None)


def check_datagen(config: Section, datagen: Datagen, spec: TableSpec) -> None:
    """SpecError when a `datagen` names a field that is no column, or generates values that do not fit the column."""
    sections = list(config.sections("plan"))
    for section, plan in zip(sections, datagen.plans if sections else (), strict=True):
        fields = section.section("fields")
        for name, how in plan.fields.items():
            field = spec.schema.find(name.lower() if spec.ignores_case else name)
            if field is None:
                fields.fail(name, f"is not a column of the table.{suggestion(name, spec.schema.column_names)}")
            if how.null_percentage and _needs_value(field, spec):
                fields.fail(f"{name}.null_percentage", f"{how.null_percentage}: '{name}' is never null. Remove it.")
            try:
                value_maker(field, how, 0)
            except ValueError as error:
                key, _, message = str(error).partition(": ")
                fields.fail(f"{name}.{key}", message)


def _needs_value(field: FieldSpec, spec: TableSpec) -> bool:
    return field.is_required or field.name in (*spec.primary_key, spec.time_column)


def datagen_fields(config: Section) -> Iterator[tuple[Section, str]]:
    """The fields that the plans name, each with its section."""
    for plan in config.sections("plan"):
        fields = plan.section("fields")
        yield from ((fields, name) for name in fields.doc)


def datagen_warnings(config: Section) -> Iterator[str]:
    """One warning for each key that has no effect."""
    yield from config.unknown(_KEYS)
    for plan in config.sections("plan"):
        yield from plan.unknown(_PLAN_KEYS)
        fields = plan.section("fields")
        for name in fields.doc:
            field = fields.section(name)
            yield from field.unknown({*_FIELD_KEYS, *_NESTED, _VALUE})
            yield from field.section(_VALUE).unknown(_FIELD_KEYS)


def _plan(section: Section) -> DatagenPlan:
    fields = section.section("fields")
    return DatagenPlan(
        limit=section.whole("limit", 0) if section.doc.get("limit") is not None else None,
        rate=section.whole("rate", 1, low=1) if section.doc.get("rate") is not None else None,
        fields={name: _field(fields.section(name)) for name in fields.doc},
    )


def _field(section: Section) -> DatagenField:
    for key in _NESTED:
        if section.has(key):
            section.fail(key, "is not built yet: maps and structs are not made up.")
    low, high = _range(section)
    return DatagenField(
        _strategy(section),
        low,
        high,
        _number(section, "scale"),
        _values(section),
        _null_percentage(section),
        _exponent(section),
        _field(section.section(_VALUE)) if section.has(_VALUE) else None,
    )


def _strategy(section: Section) -> DatagenStrategy:
    text = section.text("strategy", "increment")
    if text not in tuple(DatagenStrategy):
        hint = ' One value for all is "values": [x].' if text == "constant" else ""
        others = f"there are {', '.join(DatagenStrategy)}, and values for a list of your own"
        section.fail("strategy", f"'{text}' is not built yet; {others}.{hint}")
    return DatagenStrategy(text)


def _range(section: Section) -> tuple[int | float | str | None, int | float | str | None]:
    value = section.doc.get("range")
    if value is None:
        return None, None
    if not isinstance(value, list) or len(value) != 2:
        section.fail("range", f"{shown(value)} is not a range: write [low, high], high not included.")
    low, high = value
    if _is_number(low) and _is_number(high):
        ordered = low < high
    elif isinstance(low, str) and isinstance(high, str):
        ordered = low < high  # ISO dates and times
    else:
        section.fail("range", f"{shown(value)} is not a range of numbers, nor of dates or times as text.")
    if not ordered:
        section.fail("range", f"{shown(value)} holds nothing: the first must be less than the second.")
    return low, high


def _number(section: Section, key: str) -> int | float:
    value = section.doc.get(key)
    if value is None:
        return 1
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        section.fail(key, f"{shown(value)} is not a number.")
    return value


def _exponent(section: Section) -> float:
    exponent = float(_number(section, "e"))
    if exponent < 0:
        section.fail("e", f"{shown(exponent)} is less than 0.")
    return exponent


def _values(section: Section) -> tuple[object, ...] | None:
    value = section.doc.get("values")
    if value is not None and not isinstance(value, list):
        section.fail("values", f"{shown(value)} is not a list: write [...].")
    return None if value is None else tuple(value)


def _null_percentage(section: Section) -> int:
    percentage = section.whole("null_percentage", 0)
    if percentage > 100:
        section.fail("null_percentage", f"{percentage} is more than 100.")
    return percentage


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
