"""The outcome of decoding a record: a row, a rejected row, or nothing because the table's filter drops it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hybrid.schema.jsontext import compact, shortened

VALUE_SHOWN_MAX = 100


class Decoded(NamedTuple):
    """A row: stored values in the schema's order, epoch ms of the time column (None: no such column), delete marker."""

    values: tuple[object, ...]
    time_ms: int | None
    is_delete: bool


class Rejected(NamedTuple):
    """A message that does not convert to a row; `reason` is a sentence with column, value and expected type."""

    reason: str


class Filtered(NamedTuple):
    """A message that the table's filter drops: neither a row nor rejected."""


Outcome = Decoded | Rejected | Filtered


@dataclass(frozen=True)
class Batch:
    """The records of many messages as columns. Every list has one entry per record; a rejected one has only a reason.

    `columns` are in the schema's order. `filtered` marks the dropped records. `origins` is each record's message.
    """

    columns: list[list[object]]
    times_ms: list[int | None]
    deletes: list[bool]
    reasons: list[str | None]
    filtered: list[bool]
    origins: Sequence[int]

    @property
    def rows(self) -> list[int]:
        """The indexes of the records that are rows."""
        verdicts = zip(self.reasons, self.filtered, strict=True)
        return [place for place, (reason, filtered) in enumerate(verdicts) if reason is None and not filtered]

    def put(self, places: Sequence[int], records: Batch) -> None:
        """Replaces the records at `places` by others, one for one."""
        of_all: list[list[Any]] = [*self.columns, self.times_ms, self.deletes, self.reasons, self.filtered]
        others: list[list[Any]] = [
            *records.columns, records.times_ms, records.deletes, records.reasons, records.filtered
        ]  # fmt: skip
        for mine, theirs in zip(of_all, others, strict=True):
            for place, value in zip(places, theirs, strict=True):
                mine[place] = value


def to_batch(rows: list[Outcome], width: int, origins: Sequence[int]) -> Batch:
    """Outcomes as columns; `width` is the number of columns, `origins` is the number of each outcome's message."""
    empty_row = Decoded((None,) * width, None, False)
    decoded_rows = [row if type(row) is Decoded else empty_row for row in rows]
    return Batch(
        columns=[list(column) for column in zip(*(row.values for row in decoded_rows), strict=True)]
        or [[] for _ in range(width)],
        times_ms=[row.time_ms for row in decoded_rows],
        deletes=[row.is_delete for row in decoded_rows],
        reasons=[row.reason if type(row) is Rejected else None for row in rows],
        filtered=[type(row) is Filtered for row in rows],
        origins=origins,
    )


def shown(value: object) -> str:
    """A value as reasons show it: JSON of at most VALUE_SHOWN_MAX characters, all of which UTF-8 can encode."""
    try:
        text = compact(value)
    except (ValueError, TypeError, RecursionError):
        text = _plain(value)
    return shortened(text, VALUE_SHOWN_MAX)


def _plain(value: object) -> str:
    """A value that JSON lacks: NaN and Infinity by name, any other by its type, which is equal in every process."""
    return repr(value) if isinstance(value, float) else f"a value of type {type(value).__name__}"
