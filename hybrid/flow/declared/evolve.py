"""The columns of a source after new files: known ones, hints, and new ones as the mode says. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hybrid.flow.declared.options import Evolution

if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructField, StructType


def merged(known: StructType | None, found: StructType, hints: StructType | None, mode: Evolution) -> StructType:
    """The columns to read by. Known columns keep their types; new ones are appended in mode ADD.

    Fields inside objects are added in every mode, because an object is stored as its JSON text and would lose them.
    """
    from pyspark.sql.types import StructType

    hinted = {field.name.lower(): field for field in (hints or [])}
    if known is None:
        fields = [hinted.pop(field.name.lower(), field) for field in found]
        return StructType([*fields, *hinted.values()])
    by_name = {field.name.lower(): field for field in found}
    fields = []
    for field in known:
        other = by_name.pop(field.name.lower(), None)
        fields.append(field if other is None else _widened(field, other.dataType))
    if mode is Evolution.ADD:
        fields += [hinted.get(name, field) for name, field in by_name.items()]
    return StructType(fields)


def new_fields(known: StructType, found: StructType) -> list[str]:
    """The fields that `known` lacks, nested ones by their path, in the order of `found`."""
    return list(_new(known, found, ""))


def _new(known: StructType, found: StructType, path: str) -> Iterator[str]:
    from pyspark.sql.types import StructType

    names = {field.name.lower(): field for field in known}
    for field in found:
        before = names.get(field.name.lower())
        if before is None:
            yield f"{path}{field.name}"
            continue
        inner, outer = _object(field.dataType), _object(before.dataType)
        if isinstance(inner, StructType) and isinstance(outer, StructType):
            yield from _new(outer, inner, f"{path}{field.name}.")


def top_level(names: Sequence[str]) -> list[str]:
    """The names that are columns, not nested fields."""
    return [name for name in names if "." not in name]


def _object(kind: DataType) -> DataType:
    from pyspark.sql.types import ArrayType

    return _object(kind.elementType) if isinstance(kind, ArrayType) else kind


def _widened(field: StructField, other: DataType) -> StructField:
    from pyspark.sql.types import StructField

    return StructField(field.name, _with_fields(field.dataType, other), True)


def _with_fields(kind: DataType, other: DataType) -> DataType:
    """`kind` with the additional fields of `other`, where both are objects or lists of objects."""
    from pyspark.sql.types import ArrayType, StructField, StructType

    if isinstance(kind, ArrayType) and isinstance(other, ArrayType):
        return ArrayType(_with_fields(kind.elementType, other.elementType), True)
    if not (isinstance(kind, StructType) and isinstance(other, StructType)):
        return kind
    more = {field.name: field for field in other}
    fields = [
        StructField(member.name, _with_fields(member.dataType, more.pop(member.name).dataType), True)
        if member.name in more
        else member
        for member in kind
    ]
    return StructType([*fields, *more.values()])
