"""Reads the config of Feldera's `datagen`. After docs.feldera.com/connectors/sources/datagen."""

from __future__ import annotations

from collections.abc import Iterator

from hybrid.spec.connectors import Datagen, DatagenField, DatagenPlan, Strategy
from hybrid.spec.document import Section, shown

_KEYS = {"plan", "seed", "workers", "transaction_size"}
_PLAN_KEYS = {"limit", "rate", "fields", "worker_chunk_size"}
_FIELD_KEYS = {"strategy", "range", "scale", "values", "null_percentage", "e"}
_NESTED = ("fields", "key", "value")


def parse_datagen(config: Section) -> Datagen:
    """The rows that a `datagen` makes up."""
    sections = list(config.sections("plan"))
    plans = tuple(_plan(section) for section in sections)
    for position, plan in enumerate(plans[:-1]):
        if plan.limit is None:
            config.fail(f"plan[{position}].limit", "is missing: this plan never ends, and the next one never begins.")
    return Datagen(plans or Datagen().plans, config.whole("seed", 0) if config.doc.get("seed") is not None else None)


def datagen_fields(config: Section) -> Iterator[tuple[Section, str]]:
    """The fields that the plans name, each with the section where it stands."""
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
            yield from fields.section(name).unknown({*_FIELD_KEYS, *_NESTED})


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
            section.fail(key, "is not built yet: nested values are not made up.")
    low, high = _range(section)
    return DatagenField(_strategy(section), low, high, _scale(section), _values(section), _null_percentage(section))


def _strategy(section: Section) -> Strategy:
    text = section.text("strategy", "increment")
    if text not in tuple(Strategy):
        hint = ' One value for all is "values": [x].' if text == "constant" else ""
        message = (
            f"'{text}' is not built yet; there are {', '.join(Strategy)}, and values for a list of your own.{hint}"
        )
        section.fail("strategy", message)
    return Strategy(text)


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


def _scale(section: Section) -> int | float:
    value = section.doc.get("scale")
    if value is None:
        return 1
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        section.fail("scale", f"{shown(value)} is not a number.")
    return value


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
