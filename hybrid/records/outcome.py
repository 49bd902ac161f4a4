"""What becomes of a message: a row, a rejected row, or nothing because the table's filter drops it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hybrid.schema.jsontext import compact

VALUE_SHOWN_MAX = 100


class Decoded(NamedTuple):
    """A row: stored values in the schema's order, epoch ms of the time column (None: no such column), delete marker."""

    values: tuple[object, ...]
    time_ms: int | None
    is_delete: bool


class Rejected(NamedTuple):
    """A message that is no row of this table; `reason` is a sentence with column, value and expected type."""

    reason: str


class Filtered(NamedTuple):
    """A message that the table's filter drops: neither a row nor rejected."""


Outcome = Decoded | Rejected | Filtered


@dataclass(frozen=True)
class Batch:
    """The records of many messages, column by column. Every list has one entry each; a rejected one only a reason.

    `columns` are in the schema's order; `filtered` says which the filter dropped; `origins` which message each is of.
    """

    columns: list[list[object]]
    times_ms: list[int | None]
    deletes: list[bool]
    reasons: list[str | None]
    filtered: list[bool]
    origins: Sequence[int]

    @property
    def rows(self) -> list[int]:
        """The places of the records that are rows."""
        known = zip(self.reasons, self.filtered, strict=True)
        return [place for place, (reason, filtered) in enumerate(known) if reason is None and not filtered]

    def put(self, places: Sequence[int], records: Batch) -> None:
        """Puts other records in the place of those at `places`, one for one."""
        of_all: list[list[Any]] = [*self.columns, self.times_ms, self.deletes, self.reasons, self.filtered]
        others: list[list[Any]] = [
            *records.columns, records.times_ms, records.deletes, records.reasons, records.filtered
        ]  # fmt: skip
        for mine, theirs in zip(of_all, others, strict=True):
            for place, value in zip(places, theirs, strict=True):
                mine[place] = value


def to_batch(rows: list[Outcome], width: int, origins: Sequence[int]) -> Batch:
    """Outcomes as columns; `width` counts the schema's columns, `origins` number each one's message."""
    nothing = Decoded((None,) * width, None, False)
    good = [row if type(row) is Decoded else nothing for row in rows]
    return Batch(
        columns=[list(column) for column in zip(*(row.values for row in good), strict=True)]
        or [[] for _ in range(width)],
        times_ms=[row.time_ms for row in good],
        deletes=[row.is_delete for row in good],
        reasons=[row.reason if type(row) is Rejected else None for row in rows],
        filtered=[type(row) is Filtered for row in rows],
        origins=origins,
    )


def shown(value: object) -> str:
    """A value as a reason shows it: JSON in at most VALUE_SHOWN_MAX characters that UTF-8 can hold."""
    try:
        text = compact(value)
    except (ValueError, TypeError, RecursionError):
        text = _plain(value)
    short = text if len(text) <= VALUE_SHOWN_MAX else text[: VALUE_SHOWN_MAX - 3] + "..."
    return short.encode("utf-8", "backslashreplace").decode()


def _plain(value: object) -> str:
    """What JSON does not have: NaN and Infinity by name, anything else by its type, which is the same everywhere."""
    return repr(value) if isinstance(value, float) else f"a value of type {type(value).__name__}"
