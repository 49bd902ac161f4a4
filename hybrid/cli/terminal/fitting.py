"""Which columns a terminal of some width shows, how wide, and what goes to lines of its own. Knows widths only.

Nothing is cut. In this order, until the table fits: names of columns break at underscores, free text wraps in its
column, free text goes below its row, columns of `drop` are left out, columns of `below` follow the text (those of a
tuple together), other texts wrap. Columns that were left out come back where the others leave room.
What still does not fit is shown as records, a line per value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

GAP = 2
_PROSE_MIN = 30  # narrower columns of text are hard to read
_WRAPPED_MIN = 12


@dataclass(frozen=True)
class Measured:
    """A column and its natural width: `name_width` is the name's, `broken_width` that of its longest word."""

    name: str
    cell_width: int
    name_width: int
    broken_width: int
    is_prose: bool = False
    can_wrap: bool = False

    @property
    def natural(self) -> int:
        """The width at which no cell wraps and the name is on one line."""
        return max(self.cell_width, self.name_width)

    @property
    def least(self) -> int:
        """The width at which no cell wraps."""
        return max(self.cell_width, self.broken_width)


@dataclass(frozen=True)
class Fit:
    """The widths of the columns beside each other, in order; the names `below` each row; the names left out.

    `as_records`: no table fits.
    """

    widths: Mapping[str, int]
    below: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    as_records: bool = False


def fit(
    columns: Sequence[Measured],
    width: int,
    drop: Sequence[str] = (),
    below: Sequence[str | tuple[str, ...]] = (),
    more: Collection[str] = (),
) -> Fit:
    """Fits columns into a width. `more` are columns that are shown only if nothing else has to give way."""
    every = _beside(columns, width)
    if every is not None:
        return every
    asked = [column for column in columns if column.name not in more]
    return _beside(asked, width) or _wrapped_prose(asked, width) or _reduced(asked, width, drop, below)


def unbounded(columns: Sequence[Measured]) -> Fit:
    """Every column at its natural width."""
    return Fit({column.name: column.natural for column in columns})


def _total(widths: Collection[int]) -> int:
    return sum(widths) + GAP * max(0, len(widths) - 1)


def _beside(columns: Sequence[Measured], width: int) -> Fit | None:
    """All columns beside each other with whole cells; names break only if they must."""
    whole, broken = ({it.name: it.natural for it in columns}, {it.name: it.least for it in columns})
    return next((Fit(widths) for widths in (whole, broken) if _total(widths.values()) <= width), None)


def _wrapped_prose(columns: Sequence[Measured], width: int) -> Fit | None:
    """Free text wraps in its columns; None if they would be too narrow to read."""
    prose = sorted((column for column in columns if column.is_prose), key=lambda column: column.natural)
    widths = {column.name: column.least for column in columns if not column.is_prose}
    room = width - sum(widths.values()) - GAP * (len(columns) - 1)
    for left, column in zip(range(len(prose), 0, -1), prose, strict=True):
        share = min(column.natural, room // left)
        if share < min(column.natural, _PROSE_MIN):
            return None
        widths[column.name] = share
        room -= share
    return Fit({column.name: widths[column.name] for column in columns}) if prose else None


def _reduced(
    columns: Sequence[Measured], width: int, drop: Sequence[str], below: Sequence[str | tuple[str, ...]]
) -> Fit:
    """Free text below the row, then fewer columns, then more of them below, then wrapped ones."""
    names = {column.name for column in columns}
    moved, left_out = [column.name for column in columns if column.is_prose], list[str]()
    groups = [(group,) if isinstance(group, str) else group for group in below]
    steps = [(moved, ()), *((left_out, (name,)) for name in drop), *((moved, group) for group in groups)]
    for gives_way, group in steps:
        gives_way += [name for name in group if name in names and name not in moved]
        remaining = [column for column in columns if column.name not in (*moved, *left_out)]
        found = _beside(remaining, width)
        if found is not None:
            found, dropped = _filled_up(found, columns, width, moved, left_out)
            return replace(found, below=_ordered(columns, moved), dropped=dropped)
    widths = _shrunk(remaining, width)
    if widths is None:
        return Fit({}, as_records=True)
    return Fit(widths, _ordered(columns, moved), tuple(left_out))


def _filled_up(
    found: Fit, columns: Sequence[Measured], width: int, moved: Sequence[str], left_out: Sequence[str]
) -> tuple[Fit, tuple[str, ...]]:
    """The fit with those columns again that were left out and now have room, and the names of the others."""
    dropped = tuple(left_out)
    for name in reversed(left_out):  # what went last matters most
        fewer = tuple(other for other in dropped if other != name)
        wider = _beside([column for column in columns if column.name not in (*moved, *fewer)], width)
        if wider is not None:
            found, dropped = wider, fewer
    return found, dropped


def _ordered(columns: Sequence[Measured], names: Iterable[str]) -> tuple[str, ...]:
    chosen = set(names)
    return tuple(column.name for column in columns if column.name in chosen)


def _shrunk(columns: Sequence[Measured], width: int) -> dict[str, int] | None:
    """Take from the widest column that can wrap until all fit; None when they cannot."""
    widths = {column.name: column.least for column in columns}
    can_wrap = [column.name for column in columns if column.can_wrap]
    while _total(widths.values()) > width:
        widest = max(can_wrap, key=widths.__getitem__, default=None)
        if widest is None or widths[widest] <= _WRAPPED_MIN:
            return None
        widths[widest] -= 1
    return widths
