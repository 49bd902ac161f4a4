"""What happens to a record before it becomes a row: Pinot's ingestionConfig, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


@dataclass(frozen=True)
class Transform:
    """`column` gets the value of the expression `function` where the record has none."""

    column: str
    function: str


class ListsToJson(StrEnum):
    """Which lists that are not unnested become text: those of objects and lists, all, or none."""

    NON_PRIMITIVE = "NON_PRIMITIVE"
    ALL = "ALL"
    NONE = "NONE"


@dataclass(frozen=True)
class ComplexTypes:
    """What becomes of objects and lists in a record: objects become fields, named by their path with `delimiter`.

    Each element of a list in `unnest` (paths) becomes a row of its own. `renames` maps prefixes of names to others.
    """

    unnest: tuple[str, ...] = ()
    delimiter: str = "."
    lists: ListsToJson = ListsToJson.NON_PRIMITIVE
    renames: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class IngestionConfig:
    """`transforms` in the order in which they are evaluated; a record for which `filter_function` is true is dropped.

    Both see what `complex_types` makes of the record. With `continue_on_error`, what cannot be computed or converted is
    null, instead of rejecting the row.
    """

    transforms: tuple[Transform, ...] = ()
    filter_function: str | None = None
    continue_on_error: bool = False
    complex_types: ComplexTypes | None = None
