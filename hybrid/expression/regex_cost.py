"""An upper bound of the cost of a pattern in a backtracking engine, as a polynomial in the length of the text.

A backtracking engine (Python's `re`, Java's) tries every way in which repeats can divide a text between them. A repeat
adds no way where the following part begins with none of the repeat's characters, or where it matches every text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any

from hybrid.expression.regex_tree import (
    EVERY,
    REPEATS,
    SINGLE,
    UNBOUNDED,
    Node,
    Ranges,
    characters,
    flags_inside,
    overlap,
    parse,
    parts_of,
    union,
)

# More ways than these count as unbounded.
_WAYS_MAX = 1_000_000_000
_DEGREE_MAX = 8


@dataclass(frozen=True)
class Cost:
    """Steps for a text of n characters: the sum of `factors[d] * n**d`. None: exponential."""

    factors: tuple[int, ...] | None

    @property
    def degree(self) -> int | None:
        """The highest power; None for an exponential cost."""
        return None if self.factors is None else len(self.factors) - 1

    def length_within(self, steps: int) -> int:
        """The length of the longest text that takes at most `steps` steps, at most `steps` characters; 0 for none."""
        factors, low, high = self.factors, 0, steps
        if factors is None:
            return 0
        while low < high:
            middle = (low + high + 1) // 2
            if sum(factor * middle**power for power, factor in enumerate(factors)) <= steps:
                low = middle
            else:
                high = middle - 1
        return low


def matching_cost(text: str, flags: int) -> Cost:
    """The maximal cost of a search for a pattern, which `re` has compiled before."""
    nodes, all_flags, state = parse(text, flags)
    counter = _Counter(state.groupwidths)
    start = _Ways(1, 0 if _anchored(nodes, all_flags) else 1)
    counter.step(_Ways(1, 1))  # a search visits every position
    counter.sequence(nodes, start, _END, all_flags)
    return counter.cost()


@dataclass(frozen=True)
class _Ways:
    """The number of ways to reach a place in the pattern: at most `number * n**degree`."""

    number: int
    degree: int

    def times(self, number: int, degree: int = 0) -> _Ways:
        return _Ways(min(self.number * number, _WAYS_MAX), min(self.degree + degree, _DEGREE_MAX))


@dataclass(frozen=True)
class _Follow:
    """The continuation after a part: it begins with one of the characters in `first`, or is empty.

    `free`: the rest matches every text, so that the part is never tried again. `done`: its match ends the search.
    """

    first: Ranges
    free: bool
    done: bool


_END = _Follow((), True, True)
_INNER_END = _Follow((), True, False)


class _Counter:
    def __init__(self, widths: Any) -> None:
        self._widths = widths
        self._factors: dict[int, int] = {}
        self._exponential = False

    def cost(self) -> Cost:
        if self._exponential:
            return Cost(None)
        return Cost(tuple(self._factors.get(power, 0) for power in range(max(self._factors) + 1)))

    def step(self, ways: _Ways) -> None:
        self._exponential |= ways.number >= _WAYS_MAX or ways.degree >= _DEGREE_MAX
        self._factors[ways.degree] = self._factors.get(ways.degree, 0) + ways.number

    def sequence(self, nodes: Sequence[Node], ways: _Ways, follow: _Follow, flags: int) -> _Ways:
        """Count the steps of a sequence of parts; the ways to reach its end."""
        follows = [follow]
        for node in reversed(list(nodes)):
            follows.append(_before(node, follows[-1], flags))
        for node, after in zip(nodes, reversed(follows[:-1]), strict=True):
            ways_to_end = self.node(node, ways, after, flags)
            ways = ways if after.free else ways_to_end
        return ways

    def node(self, node: Node, ways: _Ways, follow: _Follow, flags: int) -> _Ways:
        kind, value = str(node[0]), node[1]
        if kind in SINGLE or kind in {"AT", "FAILURE"}:
            self.step(ways)
            return ways
        if kind in REPEATS:
            return self._repeat(kind, value, ways, follow, flags)
        if kind == "SUBPATTERN":
            return self.sequence(value[3], ways, follow, flags_inside(value, flags))
        if kind == "BRANCH":
            return self._branch(value[1], ways, follow, flags)
        if kind == "GROUPREF_EXISTS":
            return self._branch([value[1], value[2] or []], ways, follow, flags)
        if kind in {"ASSERT", "ASSERT_NOT"}:
            self.sequence(value[1], ways, _INNER_END, flags)
        elif kind == "ATOMIC_GROUP":
            self.sequence(value, ways, _INNER_END, flags)
        else:  # GROUPREF
            width = self._widths[value][1] if self._widths[value] else UNBOUNDED
            self.step(ways.times(1, 1) if width >= UNBOUNDED else ways.times(max(1, int(width))))
        return ways

    def _branch(self, branches: Sequence[Sequence[Node]], ways: _Ways, follow: _Follow, flags: int) -> _Ways:
        """Count the steps of branches. Of branches that begin with different characters only one is entered."""
        ends = [self.sequence(branch, ways, follow, flags) for branch in branches]
        for _ in branches:
            self.step(ways)
        firsts = sorted(
            character_range for branch in branches for character_range in _before_all(branch, follow, flags).first
        )
        apart = not any(_nullable(branch, flags) for branch in branches) and not any(
            earlier[1] >= other[0] for earlier, other in pairwise(firsts)
        )
        numbers = [end.number for end in ends]
        number = max(numbers) if apart else min(sum(numbers), _WAYS_MAX)
        return _Ways(number, max(end.degree for end in ends))

    def _repeat(self, kind: str, value: Any, ways: _Ways, follow: _Follow, flags: int) -> _Ways:
        least, most, body = int(value[0]), int(value[1]), value[2]
        if kind == "POSSESSIVE_REPEAT":
            follow = _INNER_END
        begins = _before_all(body, _Follow((), False, False), flags).first
        ends_once = follow.free or least == most or not overlap(begins, follow.first)
        nullable = _nullable(body, flags)
        inner = _Follow(union([begins, follow.first]), follow.free and least <= 1, follow.done and least <= 1)
        turn = _Counter(self._widths)
        once = turn.sequence(body, _Ways(1, 0), inner, flags)
        many = once.number > 1 or once.degree > 0 or (nullable and not inner.free)
        self._exponential |= turn._exponential
        if most >= UNBOUNDED:
            self._exponential |= many or nullable
            looks = _looks_around(body)
            for degree, factor in turn._factors.items():
                if inner.done:  # the first iteration that matches ends the search
                    self.step(ways.times(factor, degree))
                    self.step(_Ways(factor, degree + 1 if looks else max(1, degree)))
                else:
                    self.step(ways.times(factor, degree + 1 if looks else max(1, degree)))
            end = ways.times(1, 0 if ends_once else 1)
        else:
            if many:  # every iteration has its own ways
                turns = min(max(once.number, 2) ** min(most, 64) * 2, _WAYS_MAX)
            else:
                turns = 1 if ends_once else most - least + 1
            end = ways.times(turns, once.degree * most)
            for degree, factor in turn._factors.items():
                self.step(end.times(factor * max(most, 1), degree))
        return ways if kind == "POSSESSIVE_REPEAT" else end


def _before(node: Node, follow: _Follow, flags: int) -> _Follow:
    """The continuation of a part that is followed by this node, and then by `follow`."""
    kind, value = str(node[0]), node[1]
    if kind in SINGLE:
        return _Follow(characters(node, flags) or EVERY, False, False)
    if kind == "AT":
        return replace(follow, free=False, done=False)
    if kind == "SUBPATTERN":
        return _before_all(value[3], follow, flags_inside(value, flags))
    if kind == "ATOMIC_GROUP":
        return replace(_before_all(value, follow, flags), free=False, done=False)
    if kind == "BRANCH":
        several = [_before_all(branch, follow, flags) for branch in value[1]]
        return _Follow(
            union(after.first for after in several),
            any(after.free for after in several),
            any(after.done for after in several),
        )
    if kind in REPEATS:
        inside = _before_all(value[2], follow, flags)
        if value[0] > 0 and not _nullable(value[2], flags):
            return replace(inside, free=False, done=False)
        return _Follow(union([inside.first, follow.first]), follow.free, follow.done)
    return _Follow(EVERY, False, False)  # a look-around or a back reference


def _before_all(nodes: Sequence[Node], follow: _Follow, flags: int) -> _Follow:
    return reduce(lambda after, node: _before(node, after, flags), reversed(list(nodes)), follow)


def _nullable(nodes: Sequence[Node], flags: int) -> bool:
    """Whether a part may match the empty text."""
    return all(_node_nullable(node, flags) for node in nodes)


def _node_nullable(node: Node, flags: int) -> bool:
    kind, value = str(node[0]), node[1]
    if kind in SINGLE:
        return False
    if kind in REPEATS:
        return int(value[0]) == 0 or _nullable(value[2], flags)
    if kind == "SUBPATTERN":
        return _nullable(value[3], flags)
    if kind == "ATOMIC_GROUP":
        return _nullable(value, flags)
    if kind == "BRANCH":
        return any(_nullable(branch, flags) for branch in value[1])
    return True


def _looks_around(nodes: Sequence[Node]) -> bool:
    """Whether a part examines more of the text than it matches."""
    return any(
        str(node[0]) in {"ASSERT", "ASSERT_NOT", "GROUPREF", "GROUPREF_EXISTS"}
        or any(map(_looks_around, parts_of(node)))
        for node in nodes
    )


def _anchored(nodes: Sequence[Node], flags: int) -> bool:
    """Whether a pattern matches at the beginning of a text only."""
    if not nodes:
        return False
    kind, value = str(nodes[0][0]), nodes[0][1]
    if kind == "AT":
        name = str(value)
        return name == "AT_BEGINNING_STRING" or (name == "AT_BEGINNING" and not flags & re.MULTILINE)
    if kind == "SUBPATTERN":
        return _anchored(value[3], flags_inside(value, flags))
    return kind == "BRANCH" and all(_anchored(branch, flags) for branch in value[1])
