"""The numbers of arguments of functions, and the error message for a call with another number."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_NAME_BEHIND = re.compile(r"\w+\s*$")
# Functions of DuckDB whose own error does not name their arguments: minimum and maximum number (None: no maximum).
_OF_DUCKDB: Mapping[str, tuple[int, int | None]] = {
    "array_value": (1, None),
    "cardinality": (1, 1),
    "coalesce": (1, None),
    "ifnull": (2, 2),
    "json": (1, 1),
    "json_quote": (1, 1),
    "list_pack": (1, None),
    "list_value": (1, None),
    "list_zip": (1, None),
    "map_concat": (2, None),
    "nullif": (2, 2),
    "row_to_json": (1, 1),
    "substring": (2, 3),
    "trim": (1, 2),
    "unnest": (1, 1),
}

# Functions with a syntax of their own in the parser, which cannot parse calls with other numbers of arguments.
_OF_PARSER: Mapping[str, tuple[int, ...]] = {
    "first_value": (1,),
    "lag": (1, 2, 3),
    "last_value": (1,),
    "lead": (1, 2, 3),
    "listagg": (1, 2),
    "nth_value": (2,),
    "position": (2,),
    "string_agg": (1, 2),
    "substring": (2, 3),
    "trim": (1, 2),
}
_CALL_MAX = 10_000


def unread_call(text: str) -> str | None:
    """The arguments of the function in whose parentheses `text` ends, if the parser has its own syntax; else None."""
    depth, place = 0, len(text) - 1
    first = max(0, place - _CALL_MAX)
    while place >= first and (text[place] != "(" or depth):
        depth += (text[place] == ")") - (text[place] == "(")
        place -= 1
    written = _NAME_BEHIND.search(text[max(0, place - 40) : max(0, place)])
    counts = _OF_PARSER.get(written.group().strip().lower()) if written else None
    return None if written is None or counts is None else f"{written.group().strip().upper()} takes {listed(counts)}"


def is_wrong(name: str, count: int) -> bool:
    """Whether a function of DuckDB cannot take `count` arguments; only for functions whose own error is unclear."""
    fewest, most = _OF_DUCKDB.get(name, (0, None))
    return count < fewest or (most is not None and count > most)


def takes(written: str, name: str, count: int) -> str:
    """The error message for a call that `is_wrong`."""
    fewest, most = _OF_DUCKDB[name]
    return wrong_number(written, [fewest] if most is None else range(fewest, most + 1), count, more=most is None)


def wrong_number(written: str, wanted: Collection[int], count: int, *, more: bool = False) -> str:
    """`ABS takes 1 argument, not 2`; `more`: the largest number of `wanted` and any above it."""
    return f"{written.upper()} takes {listed(wanted, more=more)}, not {count}"


def listed(wanted: Collection[int], *, more: bool = False) -> str:
    """`1 argument`, `2 or 3 arguments`, `1 to 4 arguments`; `more`: the largest number and any above it."""
    numbers = sorted(set(wanted))
    if more:
        return f"{numbers[-1]} or more arguments"
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]} arguments"
    numbers_text = " or ".join(str(number) for number in numbers)
    return f"{numbers_text} argument{'' if numbers == [1] else 's'}" if numbers != [0] else "no arguments"
