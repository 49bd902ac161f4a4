"""Python's own parse tree of a regular expression, and the characters that its parts match, as ranges.

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
# The most characters of a class that are enumerated.
_FEW = 300
# The maximum of an unbounded repeat.
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
    """The nodes of a pattern, which `re` has compiled before, its flags with inline flags, and the parser's state."""
    tree = _PARSER.parse(text, flags)
    return tree, tree.state.flags, tree.state


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
    """The fewest characters that a sequence of nodes matches."""
    return int(nodes.getwidth()[0])


def flags_inside(value: Any, flags: int) -> int:
    """The flags inside of a group."""
    _, added, removed, _ = value
    if added & (re.ASCII | re.UNICODE | re.LOCALE):
        flags &= ~(re.ASCII | re.UNICODE | re.LOCALE)
    return int((flags | added) & ~removed)


def union(parts: Iterable[Ranges]) -> Ranges:
    """The union of sets of characters, sorted and disjoint."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(span for part in parts for span in part):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: Ranges) -> Ranges:
    """All other characters; `ranges` are sorted and disjoint."""
    others, begin = [], 0
    for low, high in ranges:
        if low > begin:
            others.append((begin, low - 1))
        begin = high + 1
    return (*others, (begin, LAST)) if begin <= LAST else tuple(others)


def overlap(one: Ranges, other: Ranges) -> bool:
    """Whether two sets of characters intersect."""
    return any(low <= high2 and low2 <= high for low, high in one for low2, high2 in other)


def characters(node: Node, flags: int) -> Ranges | None:
    """The characters that a node of SINGLE matches; None where they are unknown, as those of Unicode's classes."""
    kind, value = str(node[0]), node[1]
    if kind == "ANY":
        return EVERY if flags & re.DOTALL else complement(_NEWLINE)
    if kind == "IN":
        return _of_class(tuple(value), flags)
    ranges = _cased(((value, value),), flags)
    return complement(ranges) if kind == "NOT_LITERAL" else ranges


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
            class_ranges = _CLASSES[name.removeprefix("NOT_")]
            plain.append(complement(class_ranges) if name.startswith("NOT_") else class_ranges)
        else:
            if kind == "RANGE" and value[1] > _BMP_LAST and flags & re.IGNORECASE and flags & re.ASCII:
                return None  # contrary to its flags, `re` folds the case of letters beyond ASCII there
            plain.append((value,) if kind == "RANGE" else ((value, value),))
    ranges = _cased(union(plain), flags)
    return complement(ranges) if negated else ranges


@lru_cache(maxsize=4096)
def _cased(ranges: Ranges, flags: int) -> Ranges:
    """The characters, with those that `re` considers equal when it ignores case."""
    if not flags & re.IGNORECASE:
        return ranges
    lower_of, uppers_of = _cases()
    is_ascii = bool(flags & re.ASCII)
    if sum(high - low + 1 for low, high in ranges) <= _FEW:
        meant = {code for low, high in ranges for code in range(low, high + 1)}
    else:  # only these characters have several cases
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
    """The lower case of each upper-case letter, and the upper cases of each lower-case letter."""
    lower_of: dict[int, int] = {}
    uppers_of: dict[int, list[int]] = {}
    for code in range(LAST + 1):
        lower = _SRE.unicode_tolower(code)
        if lower != code:
            lower_of[code] = lower
            uppers_of.setdefault(lower, []).append(code)
    return lower_of, uppers_of
