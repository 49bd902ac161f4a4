"""Which config is that of which half of a table, and the name that the halves share."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hybrid.config.table_config import Half
from hybrid.errors import SpecError
from hybrid.schema.document import Section, configs_in, shown
from hybrid.schema.secrets import hidden_place

_NAME = re.compile(r"[A-Za-z0-9_]{1,100}")

Halves = Mapping[Half, Section]


def refuse_swapped(schema: tuple[dict[str, object], str], configs: list[tuple[dict[str, object], str]]) -> None:
    """SpecError for a schema in the place of a config, and the reverse."""
    doc, source = schema
    hint = "hybrid table create --schema SCHEMA.json --config TABLE.json"
    if "tableType" in doc and "schemaName" not in doc:
        raise SpecError(f"{source}: holds a table config, and is given as the schema.", hint=hint)
    for config, name in configs:
        if "schemaName" in config and not {"tableName", "tableType"} & config.keys():
            raise SpecError(f"{name}: holds a schema, and is given as a table config.", hint=hint)


def raw_table_name(name: str) -> str:
    """A table's name without the suffix of a half: `orders_REALTIME` is `orders`."""
    return name.removesuffix(f"_{Half.REALTIME}").removesuffix(f"_{Half.OFFLINE}")


def refuse_hidden(configs: list[tuple[dict[str, object], str]]) -> None:
    """SpecError for a config whose secrets were hidden for display: storing it would lose them."""
    for doc, source in configs:
        place = hidden_place(doc)
        if place is not None:
            raise SpecError.at(source, place, "is hidden where it was shown: give the secret itself.")


def halves_of(configs: list[tuple[dict[str, object], str]]) -> dict[Half, Section]:
    """The configs by their `tableType`. SpecError without any, and for two of the same half."""
    halves: dict[Half, Section] = {}
    for top in [Section(config, source) for doc, source in configs for config in configs_in(doc)]:
        half = Half(top.choice("tableType", tuple(Half)))
        if half in halves:
            top.fail("tableType", f"{half} is already configured by {halves[half].source}. Give each half once.")
        halves[half] = top
    if not halves:
        raise SpecError(
            "A table needs a config: REALTIME, OFFLINE or both.",
            hint="hybrid table create --schema SCHEMA.json --config TABLE.json",
        )
    return halves


def table_name(halves: Halves) -> str:
    """The table's name, on which the halves agree, without the suffix of a half."""
    names = {}
    for half, top in halves.items():
        name = top.text("tableName")
        raw = raw_table_name(name)
        if name != raw and name != f"{raw}_{half}":
            top.fail("tableName", f"'{name}' does not fit the tableType {half}. Write '{raw}'.")
        if not _NAME.fullmatch(raw):
            top.fail("tableName", f"{shown(raw)} is refused: a name has letters, digits and _, at most 100.")
        names[raw] = top
    first, *others = names
    if others:
        names[others[0]].fail("tableName", f"'{others[0]}' is not '{first}', as in {names[first].source}.")
    return first
