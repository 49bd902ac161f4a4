"""`ResultLimitWarning`: Pinot's default LIMIT has cut a result."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

_NOTE = "rows are shown, as in Pinot"


class ResultLimitWarning(UserWarning):
    """A result has only the first 10 rows, because the statement has no LIMIT."""


def limit_note(rows: int) -> str:
    """The sentence about a result that the default LIMIT has cut."""
    return f"Only the first {rows} {_NOTE}: add LIMIT to the query for more."


def warn_if_cut(notes: Sequence[str], stacklevel: int) -> None:
    """Gives a Python warning when one of a result's `notes` is a `limit_note`."""
    for note in notes:
        if _NOTE in note:
            warnings.warn(
                f"{note} In Python, all_rows=True gives all of them.", ResultLimitWarning, stacklevel=stacklevel + 1
            )
