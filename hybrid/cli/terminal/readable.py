"""Values as people read them: `196,443`, `2.8 kB`, one form of time. For terminals; elsewhere values are exact.

The kind of a value follows from its key, because a key means the same in every command.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

from hybrid.cli.cells import CellKind, printable, text
from hybrid.runtime.byte_sizes import size_text

_NAMES = {
    CellKind.STAMP: "created_at started_at finished_at last_run next_run dropped_at ts",
    CellKind.TIME: "start end boundary time limit override",
    CellKind.STATE: "state",
    CellKind.COUNT: "rows records behind lag rejected errors files rows_before rows_after added removed changed "
    "offline_rows realtime_rows offline_segments realtime_segments consuming_segments buckets_done buckets_total "
    "refreshes matching shown rows_written taken visible_rows stored_twice_rows",
    CellKind.BYTES: "bytes stored_twice_bytes",
    CellKind.PROSE: "result sentence reason message last_task detail change meaning error comment value latest_error "
    "statement",
    CellKind.COMMAND: "hint",
}
_KINDS: Mapping[str, CellKind] = {name: kind for kind, names in _NAMES.items() for name in names.split()}
_WORDS_OF_STATES = {
    "green": "OK ACTIVE RUNNING DONE COMPLETED OFFLINE WHOLE running",
    "yellow": "DROPPED PAUSED WAITING QUEUED INTERRUPTED REFUSED PLANNED IN_PROGRESS CANCELLED CONSUMING PARTIAL "
    "DRY_RUN",
    "red": "PURGING FAILED STOPPED DAMAGED stopped",
}
_COLOURS = {word: colour for colour, words in _WORDS_OF_STATES.items() for word in words.split()}
NOT_OK = "NOT OK"


_NOUN = r"(?:stored |visible |rejected )?(?:rows?|messages?|files?|segments?|buckets?|records?|offsets?|bytes)"
# A count stands before its noun, before `of` more of it, or before the word that says what became of it.
_COUNTED = re.compile(
    rf"(?<![\w.,:@/-])([0-9]{{4,}})(?= (?:{_NOUN}|of [0-9,]+ {_NOUN}|after|added|removed|changed|stay|would stay)\b)"
)
_BY_COLUMN = re.compile(r"(?<=changed \()[^()]+(?=\))")  # the changes of each column: `changed (amount 1014)`
_LAST_NUMBER = re.compile(r"(?<= )[0-9]{4,}(?=,|$)")
_DOUBLE_DIGITS = 12  # the rest of a double's 17 digits is noise of its computation


def kind_of(name: str) -> CellKind:
    """The kind of the values of a key."""
    return _KINDS.get(name, CellKind.PLAIN)


def readable(value: object, kind: CellKind) -> str:
    """A value as one line for people; free of control characters."""
    match kind, value:
        case CellKind.COUNT, int() if not isinstance(value, bool):
            return f"{value:,}"
        case CellKind.BYTES, int() if not isinstance(value, bool):
            return size_text(value)
        case ((CellKind.STAMP | CellKind.TIME), str()):
            return printable(_time(value, exact=kind is CellKind.TIME))
        case _, list() | tuple() if all(not isinstance(item, Mapping | list | tuple) for item in value):
            return printable(", ".join(map(text, value)))
    return grouped(printable(text(value))) if kind is CellKind.PROSE else printable(text(value))


def grouped(sentence: str) -> str:
    """A sentence in which long counts have separators: `196,443 rows`."""
    counted = _COUNTED.sub(_separated, sentence)
    return _BY_COLUMN.sub(lambda match: _LAST_NUMBER.sub(_separated, match[0]), counted)


def _separated(match: re.Match[str]) -> str:
    return f"{int(match[0]):,}"


def number(value: object, data_type: str) -> object:
    """A number of a result for people: a decimal without zeros at its end, a double without the noise of its sum."""
    if data_type == "BIG_DECIMAL" and isinstance(value, str):
        shown = without_zeros(value)
        return value if shown is None else Decimal(shown)
    if data_type == "DOUBLE" and isinstance(value, float) and math.isfinite(value):
        return float(f"{value:.{_DOUBLE_DIGITS}g}")
    return value


def without_zeros(decimal: str) -> str | None:
    """A finite decimal without zeros behind its last digit, all others kept; None for other texts."""
    try:
        exact = Decimal(decimal)
    except InvalidOperation:
        return None
    if not exact.is_finite():
        return None
    digits = format(exact, "f")  # `normalize` would round to the 28 digits of Python's context
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def without_twins(row: Mapping[str, object]) -> list[str]:
    """The names of an object without times in milliseconds that stand there as times too: `start_ms` beside `start`."""
    return [name for name in row if not (name.endswith("_ms") and name.removesuffix("_ms") in row)]


def colour_of(state: str) -> str:
    """The colour of a state; empty for a state that has none."""
    return "red" if state == NOT_OK else _COLOURS.get(state, "")


def _time(value: str, *, exact: bool) -> str:
    """ISO 8601 in UTC with a Z; text that is no time is unchanged."""
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return value
    if at.tzinfo is None:
        return value
    at = at.astimezone(UTC)
    return text(at if exact else at.replace(microsecond=0))
