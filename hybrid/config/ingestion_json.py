"""Reads the transforms and the filter of Pinot's ingestionConfig.

After Pinot's TableConfigUtils.validateIngestionConfig: a column has one transform, which does not read the column
itself; a column outside of the schema is allowed where another transform, or the filter, reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import pairwise

from hybrid.config.table_config import Half
from hybrid.errors import suggestion
from hybrid.schema.document import Section
from hybrid.schema.ingestion import ComplexTypes, IngestionConfig, ListsToJson, Transform
from hybrid.schema.schema import Schema
from hybrid.schema.types import DataType

_FUNCTION = "transformFunction"
_FILTER = "filterFunction"
_COMPLEX = "complexTypeConfig"
_COMPLEX_KEYS = {"fieldsToUnnest", "delimiter", "collectionNotUnnestedToJson", "prefixesToRename"}


def parse_ingestion(top: Section, schema: Schema, half: Half) -> IngestionConfig:
    """The ingestion config in the table config `top` of a half. Its transforms take precedence over the schema's."""
    section = top.section("ingestionConfig")
    places: dict[str, Section] = {}
    functions: dict[str, str] = {}
    for config in section.sections("transformConfigs"):
        column = config.text("columnName")
        if column in functions:
            config.fail("columnName", f"'{column}' has a transform already, at {places[column].path}. Keep one.")
        places[column], functions[column] = config, config.text(_FUNCTION)
    reads = {column: expression_fields(places[column], _FUNCTION, functions[column], column) for column in functions}
    for transform in schema.transforms:
        if transform.column not in functions:
            functions[transform.column] = transform.function
            reads[transform.column] = _fields(transform.function)
    filter_function, filtered_by = _filter(section.section("filterConfig"))
    for column, place in places.items():
        _check_destination(place, column, schema, [*_others(reads, column), *filtered_by])
    order = _in_order(section, reads)
    transforms = tuple(Transform(column, functions[column]) for column in order)
    complex_types = _complex_types(section, half)
    return IngestionConfig(transforms, filter_function, section.boolean("continueOnError"), complex_types)


def _complex_types(top: Section, half: Half) -> ComplexTypes | None:
    """How nested records are flattened, as in Pinot's ComplexTypeConfig."""
    if top.doc.get(_COMPLEX) is None:
        return None
    if half is Half.OFFLINE:
        top.fail(_COMPLEX, "cannot be honoured for files of jobs yet. Give it in the REALTIME config only.")
    section = top.section(_COMPLEX)
    renames = section.section("prefixesToRename")
    for prefix, other in renames.doc.items():
        if not prefix or not isinstance(other, str):
            renames.fail(str(prefix), f"'{other}' is no other prefix: write a text for a text.")
    delimiter = section.doc.get("delimiter", ".")
    if not isinstance(delimiter, str) or not delimiter:
        section.fail("delimiter", "is not a text of at least one character.")
    lists = ListsToJson(section.choice("collectionNotUnnestedToJson", tuple(ListsToJson), ListsToJson.NON_PRIMITIVE))
    return ComplexTypes(
        section.texts("fieldsToUnnest"),
        delimiter,
        lists,
        {str(prefix): str(other) for prefix, other in renames.doc.items()},
    )


def expression_fields(section: Section, key: str, function: str, column: str | None = None) -> tuple[str, ...]:
    """The fields that the expression at `key` reads. SpecError when it cannot be parsed, or reads its own `column`."""
    try:
        fields = _fields(function)
    except ValueError as error:
        section.fail(key, f"'{_short(function)}': {error}.")
    if column in fields:
        message = f"'{_short(function)}' reads '{column}', the column that it fills. Give one of them another name."
        section.fail(key, message, hint=_other_name(str(column)))
    return fields


def _other_name(column: str) -> str:
    """How a transform comes to read the field that has its column's name, as a hint."""
    return (
        f'In the REALTIME config "complexTypeConfig": {{"prefixesToRename": {{"{column}": "{column}_sent"}}}} renames '
        f"the field of the messages and every field that begins with {column}, and the transform reads {column}_sent. "
        "It flattens objects, too: a JSON column that takes one would be null. In a file the field needs another name."
    )


def flattening_warnings(top: Section, schema: Schema, config: IngestionConfig) -> Iterator[str]:
    """A warning where complexTypeConfig, which flattens objects as in Pinot, leaves nothing for JSON columns."""
    if config.complex_types is None:
        return
    filled = {transform.column for transform in config.transforms}
    yield from _renamed_columns(top, schema, config.complex_types.renames, filled)
    taking = (field.name for field in schema.fields if field.data_type is DataType.JSON)
    columns = [f"'{name}'" for name in taking if name not in filled]
    if columns:
        word, verb = ("columns", "are") if len(columns) > 1 else ("column", "is")
        yield (
            f"{top.source}: ingestionConfig.{_COMPLEX}: it flattens objects: JSON {word} {', '.join(columns)} {verb} "
            "null where a message has an object."
        )


def _renamed_columns(
    top: Section, schema: Schema, renames: Mapping[str, str], filled: Collection[str]
) -> Iterator[str]:
    """A warning for each prefix with which further columns begin: their fields are renamed, too."""
    made = tuple(filter(None, renames.values()))
    open_columns = [name for name in schema.column_names if name not in filled and not name.startswith(made)]
    for prefix in renames:
        names = [f"'{name}'" for name in open_columns if name.startswith(prefix) and name != prefix]
        if names:
            word, verb = ("columns", "get") if len(names) > 1 else ("column", "gets")
            place = f"{top.source}: ingestionConfig.{_COMPLEX}.prefixesToRename.{prefix}"
            yield (
                f"{place}: it renames every field that begins with '{prefix}': the {word} {', '.join(names)} {verb} "
                "nothing from a field of the same name."
            )


_TIME_CHECKS = {
    "rowTimeValueCheck": "Pinot would put the time of ingestion in the place of times outside of 1971 to 2071.",
    "segmentTimeValueCheck": "Pinot would refuse a segment with times outside of 1971 to 2071.",
}


def ingestion_warnings(section: Section) -> Iterator[str]:
    """Warnings for time checks and unknown keys in `ingestionConfig`, and for functions that mean something else."""
    for key, otherwise in _TIME_CHECKS.items():
        if section.boolean(key):
            yield (
                f"{section.source}: {section.at(key)}: true has no effect: rows of the years 1 to 9999 are kept with "
                f"their times. {otherwise}"
            )
    for config in section.sections("transformConfigs"):
        yield from config.unknown({"columnName", _FUNCTION})
        yield from expression_notes(config, _FUNCTION)
    yield from section.section("filterConfig").unknown({_FILTER})
    yield from expression_notes(section.section("filterConfig"), _FILTER)
    yield from section.section(_COMPLEX).unknown(_COMPLEX_KEYS)


def expression_notes(section: Section, key: str) -> Iterator[str]:
    """A warning for what the expression at `key` may not mean."""
    if section.has(key):
        from hybrid.expression.parse import notes_of

        for note in notes_of(section.text(key)):
            yield f"{section.source}: {section.at(key)}: {note}"


def _fields(function: str) -> tuple[str, ...]:
    # Imported here, so that a table without transforms does not load the parser.
    from hybrid.expression.parse import parse_expression

    return parse_expression(function).fields


def _filter(section: Section) -> tuple[str | None, tuple[str, ...]]:
    if not section.has(_FILTER):
        return None, ()
    function = section.text(_FILTER)
    return function, expression_fields(section, _FILTER, function)


def _others(reads: Mapping[str, Iterable[str]], column: str) -> Iterator[str]:
    for other, fields in reads.items():
        if other != column:
            yield from fields


def _check_destination(section: Section, column: str, schema: Schema, read: Iterable[str]) -> None:
    if schema.find(column) is None and not any(_is_of(name, column) for name in read):
        near = suggestion(column, schema.column_names)
        names = ", ".join(schema.column_names)
        message = f"'{column}' is neither a column of the schema '{schema.name}' nor read by another transform."
        section.fail("columnName", f"{message}{near} Columns are: {names}.")


def _in_order(section: Section, reads: Mapping[str, Iterable[str]]) -> list[str]:
    """The columns sorted so that each follows the columns that its transform reads. SpecError for a cycle."""
    order: list[str] = []

    def visit(column: str, path: tuple[str, ...]) -> None:
        if column in path:
            round_trip = [*path[path.index(column) :], column]
            steps = ", ".join(f"'{column_name}' reads '{other}'" for column_name, other in pairwise(round_trip))
            message = f"these transforms wait for each other: {steps}."
            section.fail("transformConfigs", message, hint=_other_name(column))
        for other in reads:
            if other != column and other not in order and any(_is_of(name, other) for name in reads[column]):
                visit(other, (*path, column))
        if column not in order:
            order.append(column)

    for column in reads:
        visit(column, ())
    return order


def _is_of(name: str, column: str) -> bool:
    """Whether a field is the column, or part of the object that the column holds."""
    return name == column or name.startswith(f"{column}.")


def _short(function: str) -> str:
    return function if len(function) <= 100 else function[:97] + "..."
