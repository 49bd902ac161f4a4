"""Transforms and filters of records: Pinot's ingestionConfig, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True)
class Transform:
    """A transform: `column` gets the value of the expression `function` where the record has no value."""

    column: str
    function: str


class ListsToJson(StrEnum):
    """Which lists become JSON text, unless they are unnested: lists of objects and lists, all lists, or none."""

    NON_PRIMITIVE = "NON_PRIMITIVE"
    ALL = "ALL"
    NONE = "NONE"


@dataclass(frozen=True)
class ComplexTypes:
    """How nested records are flattened: objects become fields, named by their path with `delimiter`.

    Each element of a list in `unnest` (paths) becomes its own row. `renames` maps prefixes of names to new prefixes.
    """

    unnest: tuple[str, ...] = ()
    delimiter: str = "."
    lists: ListsToJson = ListsToJson.NON_PRIMITIVE
    renames: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class IngestionConfig:
    """The ingestion config of a half. A record for which `filter_function` is true is dropped.

    `transforms` are in the order in which they are evaluated. They and the filter read the record as `complex_types`
    flattened it. With `continue_on_error` a value that cannot be computed or converted is null, and the row is kept.
    """

    transforms: tuple[Transform, ...] = ()
    filter_function: str | None = None
    continue_on_error: bool = False
    complex_types: ComplexTypes | None = None
