"""What happens to a record before it becomes a row: Pinot's ingestionConfig, as values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Transform:
    """`column` gets the value of the expression `function` where the record has none."""

    column: str
    function: str


@dataclass(frozen=True)
class IngestionConfig:
    """`transforms` in the order in which they are evaluated; a record for which `filter_function` is true is dropped.

    With `continue_on_error`, what cannot be computed or converted is null, instead of rejecting the row.
    """

    transforms: tuple[Transform, ...] = ()
    filter_function: str | None = None
    continue_on_error: bool = False
