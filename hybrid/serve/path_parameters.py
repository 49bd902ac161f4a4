"""Path parameters: a table, with or without the suffix of a half, and the half named by `type`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Path, Query

from hybrid.api.table import Table
from hybrid.config.table_config import Half
from hybrid.config.table_halves import raw_table_name
from hybrid.errors import NotFoundError, UsageError, suggestion
from hybrid.operations.segments import Segment
from hybrid.serve.context import ServerContext

_LENGTH_MAX = 100

TableName = Annotated[str, Path(description="A table, or one half of it: orders, orders_REALTIME", examples=["orders"])]
HalfType = Annotated[
    str | None, Query(alias="type", description="REALTIME or OFFLINE; both unless one is named", examples=["OFFLINE"])
]


@dataclass(frozen=True)
class PathTable:
    """An existing table, and the half that the request names (None: no half)."""

    table: Table
    half: Half | None

    @property
    def halves(self) -> list[Half]:
        """Return the selected halves, OFFLINE first."""
        return [half for half in (Half.OFFLINE, Half.REALTIME) if half in self.table.spec.halves and self._means(half)]

    @property
    def is_half_of_two(self) -> bool:
        """Whether the request names one half of a table that has two."""
        return self.half is not None and len(self.table.spec.halves) > 1

    def segments(self) -> list[Segment]:
        """Return the segments of the selected halves, by half and name."""
        return [segment for segment in self.table.segments() if self._means(Half(segment.half))]

    def _means(self, half: Half) -> bool:
        return self.half in (None, half)


def path_table(context: ServerContext, name: str, type_: str | None = None) -> PathTable:
    """Return the table and half that a path names.

    NotFoundError, with a suggestion, when there is no such table or it has no such half; UsageError when `type_` is no
    half, or not the one of the name's suffix.
    """
    raw, suffix = raw_table_name(name), half_in(name)
    if len(raw) > _LENGTH_MAX:
        raise NotFoundError(f"Table '{raw[:_LENGTH_MAX]}...' does not exist: no name is that long.")
    table = context.home.table(raw)
    type_half = half_type(type_)
    if suffix and type_half and suffix is not type_half:
        raise UsageError(f"type: '{type_}' is not the half of the name '{name}'.")
    half = suffix or type_half
    if half and half not in table.spec.halves:
        raise NotFoundError(f"Table '{raw}' has no {half} half.")
    return PathTable(table, half)


def whole_table(context: ServerContext, name: str, operation: str) -> Table:
    """Return the table of an operation that acts on all its halves; UsageError for the name of one half of two."""
    target = path_table(context, name)
    if target.is_half_of_two:
        raise UsageError(
            f"'{name}' names one half, and {operation} acts on both. Nothing was changed.",
            hint=f"Name the table: '{target.table.name}'.",
        )
    return target.table


def offline_table(context: ServerContext, name: str, type_: str | None = None) -> Table:
    """Return the table of an operation that replaces segments of OFFLINE; UsageError for a REALTIME half."""
    target = path_table(context, name, type_)
    if target.half is Half.REALTIME:
        raise UsageError(f"Segments of OFFLINE are replaced, not of REALTIME. '{target.table.name}' was not changed.")
    return target.table


def listed_halves(context: ServerContext, name: str, type_: str | None = None) -> tuple[str, list[Half]]:
    """Return the name and the selected halves of a table that a path names, also of a remote one.

    Errors as of `path_table`.
    """
    home, raw = context.home.context, raw_table_name(name)
    definition = home.remote.find(raw)
    if definition is None:
        target = path_table(context, name, type_)
        return target.table.name, target.halves
    half = half_in(name) or half_type(type_)
    return raw, [
        one for one in (Half.OFFLINE, Half.REALTIME) if one in home.spec_of(definition).halves and half in (None, one)
    ]


def half_in(name: str) -> Half | None:
    """Return the half that a name's suffix names."""
    return next((half for half in Half if name.endswith(f"_{half}")), None)


def half_type(text: str | None) -> Half | None:
    """Return the half that `type` names, in any letter case; UsageError for another text."""
    if text is None:
        return None
    try:
        return Half(text.upper())
    except ValueError as error:
        near = suggestion(text.upper(), list(Half))
        raise UsageError(f"type: '{text[:_LENGTH_MAX]}' is neither REALTIME nor OFFLINE.{near}") from error
