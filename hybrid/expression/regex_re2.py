"""Translates regular expressions from Python's syntax to RE2, with the same result for every text.

Classes are written as ranges of the characters in Python's classes, because those of RE2, and its rules of case,
differ. RE2 works on UTF-8; surrogates are encoded as by Python's `surrogatepass`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import re2

from hybrid.expression.regex_tree import (
    REPEATS,
    SINGLE,
    UNBOUNDED,
    Node,
    Ranges,
    characters,
    flags_inside,
    least_width,
    parse,
    parts_of,
)

_REPEATS_MAX = 1000
_PROGRAM_MAX = 5000
# The most bytes that RE2 may scan for a value, where each of many matches may scan the rest of the text.
_LOOKS_MAX = 100_000_000
_ENCODING, _ERRORS = "utf-8", "surrogatepass"


class NotTranslated(Exception):
    """The error for a pattern that RE2 cannot express; the message is the end of a sentence: `it looks around`."""


@dataclass(frozen=True)
class Re2Match:
    """A match: the texts of its groups, None for a group that did not take part."""

    texts: Sequence[str | None]
    names: dict[str, int]

    def __getitem__(self, group: int | str) -> str | None:
        """The text of a group; IndexError for a missing group, with the message of `re`."""
        number = self.names.get(group, -1) if isinstance(group, str) else group
        if not 0 <= number < len(self.texts):
            raise IndexError("no such group")
        return self.texts[number]


class LinearPattern:
    """A pattern that RE2 matches in linear time."""

    def __init__(self, text: str, flags: int, *, values: bool) -> None:
        """NotTranslated for a pattern that RE2 cannot match as `re` does. `values`: the matches are needed, too."""
        nodes, all_flags, state = parse(text, flags)
        writer = _Writer(values)
        written = writer.sequence(nodes, all_flags, is_last=True)
        self._names: dict[str, int] = dict(state.groupdict)
        self._groups = [0, *(writer.numbers.get(number, -1) for number in range(1, state.groups))]
        self._marks = writer.marks
        self._looks_far = _looks_far(nodes)
        self._nothing_last = _nothing_last(nodes)
        self._nullable = least_width(nodes) == 0
        options = re2.Options()
        options.log_errors = False
        try:
            self._pattern = re2.compile(written.encode(_ENCODING), options)
        except re2.error as error:
            reason = error.args[0] if error.args else error
            raise NotTranslated(
                reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
            ) from error
        if self._pattern.programsize > _PROGRAM_MAX:
            raise NotTranslated("its repeats and classes are too large together")

    def check_replaces(self) -> None:
        """NotTranslated for a pattern that may prefer an empty match: a position may then have a further match."""
        if self._nullable and not self._nothing_last:
            raise NotTranslated("it may match nothing although something is there")

    def fits(self, text: str) -> bool:
        """Whether some part of the text matches."""
        return self._pattern.search(text.encode(_ENCODING, _ERRORS)) is not None

    def search(self, text: str) -> Re2Match | None:
        """The first match."""
        data = text.encode(_ENCODING, _ERRORS)
        spans = self._spans(data, 0)
        return self._found(data, spans) if spans else None

    def pieces(self, text: str, begin: int = 0) -> Iterator[tuple[str, Re2Match | None]]:
        """Every match with the text between it and the previous match; at the end the rest of the text, and None.

        Matches are searched from the character `begin` on. ValueError when that takes too long.
        """
        data = text.encode(_ENCODING, _ERRORS)
        place = len(text[:begin].encode(_ENCODING, _ERRORS))
        last, budget = 0, _LOOKS_MAX
        while place <= len(data):
            spans = self._spans(data, place)
            if not spans:
                break
            budget -= len(data) - spans[0][0] if self._looks_far else 0
            if budget < 0:
                raise ValueError("the text is too long for so many matches of this regular expression")
            start, end = spans[0]
            yield _text(data, last, start), self._found(data, spans)
            last = end
            place = end if end > start else _next_place(data, end)
        yield _text(data, last, len(data)), None

    def _spans(self, data: bytes, place: int) -> list[tuple[int, int]]:
        """The spans of the groups, by Python's numbers; (-1, -1) for a group without a part. Empty without a match."""
        match = self._pattern.search(data, place)
        if match is None:
            return []
        # The translation of `$` includes the final newline in the match.
        most = max((match.start(mark) for mark in self._marks), default=-1)
        spans = [match.span(group) if group >= 0 else (-1, -1) for group in self._groups]
        return [(start, min(end, most)) for start, end in spans] if most >= 0 else spans

    def _found(self, data: bytes, spans: list[tuple[int, int]]) -> Re2Match:
        return Re2Match([None if start < 0 else _text(data, start, end) for start, end in spans], self._names)


def _text(data: bytes, start: int, end: int) -> str:
    return data[start:end].decode(_ENCODING, _ERRORS)


def _next_place(data: bytes, place: int) -> int:
    """The offset of the next character."""
    place += 1
    while place < len(data) and data[place] & 0xC0 == 0x80:
        place += 1
    return place


@dataclass
class _Writer:
    """Writes nodes in RE2's syntax. `numbers` maps Python's groups to RE2's; `marks` are the groups before a `$`."""

    values: bool
    numbers: dict[int, int] = field(default_factory=dict)
    marks: list[int] = field(default_factory=list)
    _groups: int = 0

    def sequence(self, nodes: Sequence[Node], flags: int, *, is_last: bool) -> str:
        """The text of a sequence; `is_last`: it ends the pattern."""
        final = len(nodes) - 1
        return "".join(self._node(node, flags, is_last and place == final) for place, node in enumerate(nodes))

    def _node(self, node: Node, flags: int, is_last: bool) -> str:
        kind, value = str(node[0]), node[1]
        if kind in SINGLE:
            return _class(characters(node, flags))
        if kind == "AT":
            return self._at(str(value), flags, is_last)
        if kind == "SUBPATTERN":
            return self._group(value, flags, is_last)
        if kind == "BRANCH":
            return f"(?:{'|'.join(self.sequence(branch, flags, is_last=is_last) for branch in value[1])})"
        if kind in REPEATS and kind != "POSSESSIVE_REPEAT":
            return self._repeat(kind, value, flags)
        names = {"ASSERT": "looks around", "ASSERT_NOT": "looks around", "FAILURE": "looks around"}
        names |= {"GROUPREF": "refers back to a group", "GROUPREF_EXISTS": "refers back to a group"}
        raise NotTranslated(f"it {names.get(kind, 'has an atomic group or possessive repeat')}")

    def _group(self, value: Any, flags: int, is_last: bool) -> str:
        number, inner = value[0], flags_inside(value, flags)
        if number is None:
            return f"(?:{self.sequence(value[3], inner, is_last=is_last)})"
        self._groups += 1
        self.numbers[number] = self._groups
        return f"({self.sequence(value[3], inner, is_last=is_last)})"

    def _repeat(self, kind: str, value: Any, flags: int) -> str:
        least, most = int(value[0]), int(value[1])
        if self.values and most > 1 and least_width(value[2]) == 0 and _has_group(value[2]):
            raise NotTranslated("it repeats a group that may match nothing")
        if least > _REPEATS_MAX or _REPEATS_MAX < most < UNBOUNDED:
            raise NotTranslated(f"it repeats more than {_REPEATS_MAX} times")
        count = f"{{{least},}}" if most >= UNBOUNDED else f"{{{least},{most}}}"
        short = {"{0,}": "*", "{1,}": "+", "{0,1}": "?"}.get(count, count)
        body = self.sequence(value[2], flags, is_last=False)
        return f"(?:{body}){short}{'?' if kind == 'MIN_REPEAT' else ''}"

    def _at(self, name: str, flags: int, is_last: bool) -> str:
        lines = bool(flags & re.MULTILINE)
        if name in {"AT_BEGINNING", "AT_BEGINNING_STRING"}:
            return "(?m:^)" if lines and name == "AT_BEGINNING" else r"\A"
        if name == "AT_END_STRING":
            return r"\z"
        if name == "AT_END" and lines:
            return "(?m:$)"
        if name == "AT_END":
            if not is_last:
                raise NotTranslated("a '$' stands before more of it")
            self._groups += 1
            self.marks.append(self._groups)
            return r"()(?:\n?\z)"
        if name == "AT_BOUNDARY" and flags & re.ASCII:
            return r"\b"
        raise NotTranslated(r"it has a \B")


def _class(ranges: Ranges | None) -> str:
    if ranges is None:
        raise NotTranslated("it has a class of Unicode")
    if not ranges:
        return r"[^\x{0}-\x{10FFFF}]"
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return f"\\x{{{ranges[0][0]:X}}}"
    written = "".join(rf"\x{{{low:X}}}-\x{{{high:X}}}" for low, high in ranges)
    return f"[{written}]"


def _has_group(nodes: Sequence[Node]) -> bool:
    return any(
        (str(node[0]) == "SUBPATTERN" and node[1][0] is not None) or any(map(_has_group, parts_of(node)))
        for node in nodes
    )


def _has_unbounded(nodes: Sequence[Node]) -> bool:
    return any(
        (str(node[0]) in REPEATS and int(node[1][1]) >= UNBOUNDED) or any(map(_has_unbounded, parts_of(node)))
        for node in nodes
    )


def _looks_far(nodes: Sequence[Node]) -> bool:
    """Whether a match may need a scan of the whole rest of the text for a preferred match."""
    for node in nodes:
        kind, value = str(node[0]), node[1]
        if kind in REPEATS and int(value[0]) != int(value[1]) and _has_unbounded(value[2]):
            return True
        if kind == "BRANCH" and any(map(_has_unbounded, value[1])):
            return True
        if any(map(_looks_far, parts_of(node))):
            return True
    return False


def _nothing_last(nodes: Sequence[Node]) -> bool:
    """Whether the empty match is always the last alternative."""
    for node in nodes:
        kind, value = str(node[0]), node[1]
        if kind == "MIN_REPEAT":
            return False
        if kind == "BRANCH" and any(least_width(branch) == 0 for branch in value[1][:-1]):
            return False
        if not all(map(_nothing_last, parts_of(node))):
            return False
    return True
