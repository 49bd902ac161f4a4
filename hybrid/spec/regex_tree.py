"""Python's own reading of a regular expression, and which characters each part of it matches, as ranges.

`re._parser` is the parser that `re` compiles with, from Python 3.11 on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any

_PARSER = import_module("re._parser")
_CONSTANTS = import_module("re._constants")
_SRE = import_module("_sre")
_OTHER_CASES: dict[int, tuple[int, ...]] = import_module("re._casefix")._EXTRA_CASES
LAST, _BMP_LAST, _ASCII_END = 0x10FFFF, 0xFFFF, 128
# Characters of a class that are looked at one by one.
_FEW = 300
# What an unbounded repeat has as its most.
UNBOUNDED = int(_CONSTANTS.MAXREPEAT)

Node = tuple[Any, Any]
Ranges = tuple[tuple[int, int], ...]
EVERY: Ranges = ((0, LAST),)
_NEWLINE: Ranges = ((10, 10),)
_CLASSES: dict[str, Ranges] = {
    "DIGIT": ((48, 57),),
    "SPACE": ((9, 13), (32, 32)),
    "WORD": ((48, 57), (65, 90), (95, 95), (97, 122)),
}
SINGLE = frozenset(("LITERAL", "NOT_LITERAL", "ANY", "IN"))
REPEATS = frozenset(("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"))


def parse(text: str, flags: int) -> tuple[Sequence[Node], int, Any]:
    """The nodes of a pattern that `re` has compiled, its flags with those inside of it, and the parser's state."""
    found = _PARSER.parse(text, flags)
    return found, found.state.flags, found.state


def parts_of(node: Node) -> Sequence[Sequence[Node]]:
    """The sequences inside of a repeat, group or choice."""
    kind, value = str(node[0]), node[1]
    if kind in REPEATS:
        return [value[2]]
    if kind == "SUBPATTERN":
        return [value[3]]
    if kind == "ATOMIC_GROUP":
        return [value]
    return list(value[1]) if kind == "BRANCH" else []


def least_width(nodes: Any) -> int:
    """The fewest characters that a sequence of the parser's matches."""
    return int(nodes.getwidth()[0])


def flags_inside(value: Any, flags: int) -> int:
    """The flags inside of a group."""
    _, added, removed, _ = value
    if added & (re.ASCII | re.UNICODE | re.LOCALE):
        flags &= ~(re.ASCII | re.UNICODE | re.LOCALE)
    return int((flags | added) & ~removed)


def union(parts: Iterable[Ranges]) -> Ranges:
    """The characters of any of them."""
    found: list[tuple[int, int]] = []
    for low, high in sorted(one for part in parts for one in part):
        if found and low <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(found[-1][1], high)
        else:
            found.append((low, high))
    return tuple(found)


def complement(ranges: Ranges) -> Ranges:
    """All other characters; `ranges` are sorted and apart."""
    found, begin = [], 0
    for low, high in ranges:
        if low > begin:
            found.append((begin, low - 1))
        begin = high + 1
    return (*found, (begin, LAST)) if begin <= LAST else tuple(found)


def meet(one: Ranges, other: Ranges) -> bool:
    """Whether some character is in both."""
    return any(low <= high2 and low2 <= high for low, high in one for low2, high2 in other)


def characters(node: Node, flags: int) -> Ranges | None:
    """What a node of SINGLE matches; None where they are not told here, as those of Unicode's classes."""
    kind, value = str(node[0]), node[1]
    if kind == "ANY":
        return EVERY if flags & re.DOTALL else complement(_NEWLINE)
    if kind == "IN":
        return _of_class(tuple(value), flags)
    found = _cased(((value, value),), flags)
    return complement(found) if kind == "NOT_LITERAL" else found


@lru_cache(maxsize=256)
def _of_class(items: tuple[Node, ...], flags: int) -> Ranges | None:
    negated = bool(items) and str(items[0][0]) == "NEGATE"
    plain: list[Ranges] = []
    for operator, value in items[1:] if negated else items:
        kind = str(operator)
        if kind == "CATEGORY":
            if not flags & re.ASCII:
                return None
            name = str(value).removeprefix("CATEGORY_")
            known = _CLASSES[name.removeprefix("NOT_")]
            plain.append(complement(known) if name.startswith("NOT_") else known)
        else:
            if kind == "RANGE" and value[1] > _BMP_LAST and flags & re.IGNORECASE and flags & re.ASCII:
                return None  # `re` does not regard the case of letters beyond ASCII there, against its flags
            plain.append((value,) if kind == "RANGE" else ((value, value),))
    found = _cased(union(plain), flags)
    return complement(found) if negated else found


@lru_cache(maxsize=4096)
def _cased(ranges: Ranges, flags: int) -> Ranges:
    """With all characters that `re` takes for these when it does not regard case."""
    if not flags & re.IGNORECASE:
        return ranges
    lower_of, uppers_of = _cases()
    is_ascii = bool(flags & re.ASCII)
    if sum(high - low + 1 for low, high in ranges) <= _FEW:
        meant = {code for low, high in ranges for code in range(low, high + 1)}
    else:  # of these alone the case matters
        cased = (*lower_of, *uppers_of, *_OTHER_CASES)
        meant = {code for code in cased if any(low <= code <= high for low, high in ranges)}
    if is_ascii:
        meant = {code for code in meant if code < _ASCII_END}
    lower = {lower_of.get(code, code) for code in meant}
    if not is_ascii:
        lower |= {other for code in lower for other in _OTHER_CASES.get(code, ())}
    uppers = {upper for code in lower for upper in uppers_of.get(code, ()) if upper < _ASCII_END or not is_ascii}
    return union([ranges, tuple((code, code) for code in sorted(lower | uppers))])


@lru_cache(maxsize=1)
def _cases() -> tuple[dict[int, int], dict[int, list[int]]]:
    """The small letter of each capital one, and the other way round."""
    lower_of: dict[int, int] = {}
    uppers_of: dict[int, list[int]] = {}
    for code in range(LAST + 1):
        lower = _SRE.unicode_tolower(code)
        if lower != code:
            lower_of[code] = lower
            uppers_of.setdefault(lower, []).append(code)
    return lower_of, uppers_of
