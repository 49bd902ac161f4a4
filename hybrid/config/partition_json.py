"""Reads Pinot's segmentPartitionConfig of OFFLINE: the columns by which the rows of a bucket are partitioned."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from hybrid.config.table_config import PartitionedColumn, PartitionFunction
from hybrid.schema.document import Section, shown
from hybrid.schema.named_column import column
from hybrid.schema.schema import FieldSpec, Schema
from hybrid.schema.types import DataType

PARTITIONS = "segmentPartitionConfig"
_COLUMNS = "columnPartitionMap"
_FUNCTIONS = {
    "murmur": PartitionFunction.MURMUR,
    "murmur2": PartitionFunction.MURMUR,
    "modulo": PartitionFunction.MODULO,
    "hashcode": PartitionFunction.HASH_CODE,
    "bytearray": PartitionFunction.BYTE_ARRAY,
}
_WHOLE = {DataType.INT, DataType.LONG}
# The most files that a bucket may have by the partitions of all columns together.
_COUNT_MAX = 10_000


def parse_partitions(offline: Section | None, schema: Schema) -> tuple[PartitionedColumn, ...]:
    """The partitioned columns, in the order of the file.

    A column whose partition function is not built is skipped, because partitioning changes no answer.
    """
    columns: list[PartitionedColumn] = []
    for section, field in _entries(offline, schema):
        count = section.whole("numPartitions", 0, low=1)
        if not 1 <= count <= _COUNT_MAX:
            section.fail("numPartitions", f"{shown(section.doc.get('numPartitions'))} is not from 1 to {_COUNT_MAX}.")
        if _why_not(section, field) is None:
            function = _FUNCTIONS[section.text("functionName").lower()]
            columns.append(PartitionedColumn(field.name, function, count, str(field.default_null)))
            files = prod(earlier.count for earlier in columns)
            if files > _COUNT_MAX:
                message = f"{count} makes {files} partitions of all columns together; {_COUNT_MAX} are the most."
                section.fail("numPartitions", message)
    return tuple(columns)


def partition_warnings(offline: Section | None, schema: Schema) -> Iterator[str]:
    """One warning for each column that is skipped."""
    for section, field in _entries(offline, schema):
        why = _why_not(section, field)
        if why is not None:
            yield f"{section.source}: {section.path}: {why}; segments are not divided by it."


def _entries(offline: Section | None, schema: Schema) -> Iterator[tuple[Section, FieldSpec]]:
    if offline is not None:
        top = offline.section("tableIndexConfig").section(PARTITIONS).section(_COLUMNS)
        yield from ((top.section(name), column(top, name, name, schema)) for name in top.doc)


def _why_not(section: Section, field: FieldSpec) -> str | None:
    name = section.text("functionName")
    function = _FUNCTIONS.get(name.lower())
    settings = section.section("functionConfig").doc
    if function is None or any(str(value).lower() != "false" for value in settings.values()):
        return f"the partition function {shown(name)}{' with a functionConfig' if function else ''} is not built"
    fits = _WHOLE if function is PartitionFunction.MODULO else {*_WHOLE, DataType.STRING}
    if field.data_type not in fits or not field.single_value:
        many = "" if field.single_value else " with several values"
        return f"the partition function '{name}' is not built for {field.data_type}{many}"
    return None
