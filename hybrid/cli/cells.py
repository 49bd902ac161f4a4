"""Values of results as text, and what the columns of a list hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto

from hybrid.runtime.text_table import CONTROL as CONTROL
from hybrid.runtime.text_table import printable as printable
from hybrid.runtime.text_table import text as text

Row = Mapping[str, object]

_CSV_PLAIN = re.compile(r"[^,\"\r\n]+")
_CSV_EDGE = " \t\ufeff"  # readers trim blanks, and a byte order mark
MESSAGE = {code: shown for code, shown in CONTROL.items() if code != 10}


class CellKind(Enum):
    """What a column holds; decides the form of its values and what a narrow terminal does with it.

    STAMP is when something was done, shown to the second. TIME is a time of data, shown exactly, because commands take
    it. PROSE is free text that wraps. COMMAND is text that is copied, so it is never broken.
    """

    PLAIN = auto()
    STAMP = auto()
    TIME = auto()
    STATE = auto()
    COUNT = auto()
    BYTES = auto()
    PROSE = auto()
    COMMAND = auto()


@dataclass(frozen=True)
class View:
    """The columns of a list, in order, and what they do on a terminal that is too narrow for them.

    Free text always gives way first. Then columns of `drop` are left out, and then columns of `below` move to a line
    below their row, those of a tuple together; in both the first name goes first. `more` are shown only on a terminal,
    and only with room. `notes` are shown only on a terminal, below the rows that have them. `kinds` None: the kind of a
    column follows from its name. They are given for columns that users have named.
    """

    columns: tuple[str, ...]
    drop: tuple[str, ...] = ()
    below: tuple[str | tuple[str, ...], ...] = ()
    more: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    kinds: Mapping[str, CellKind] | None = None


def csv_cell(value: object) -> str:
    """A value in a CSV cell: nothing for None, `""` for an empty text; in quotes where it needs them."""
    if value is None:
        return ""
    cell = text(value)
    if cell and _CSV_PLAIN.fullmatch(cell) and cell[0] not in _CSV_EDGE and cell[-1] not in _CSV_EDGE:
        return cell
    return '"' + cell.replace('"', '""') + '"'
