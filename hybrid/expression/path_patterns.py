"""Selects input files by name: hidden files, and Java's PathMatcher (`glob:`, `regex:`) as regular expressions."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hybrid.expression.user_patterns import PatternError, UserPattern, compile_user_pattern

__all__ = ["PatternError", "compile_path_pattern", "glob_to_regex", "is_hidden"]
_NOTHING = r"[^\x00-\x{10FFFF}]"
_SPECIAL = {"*": "[^/]*", "?": "[^/]"}


def is_hidden(name: str) -> bool:
    """Whether the name of a file or folder marks it as no data: `_SUCCESS`, `.part-0.crc`, unfinished files."""
    return name.startswith((".", "_"))


def compile_path_pattern(text: str) -> UserPattern:
    """The pattern, which matches whole paths. A text without `glob:` or `regex:` is a glob."""
    syntax, colon, body = text.partition(":")
    if not colon or syntax not in {"glob", "regex"}:
        syntax, body = "glob", text
    if not body:
        raise PatternError("it is empty")
    return compile_user_pattern(body if syntax == "regex" else glob_to_regex(body), dot_matches_newline=True)


def glob_to_regex(glob: str) -> str:
    r"""Java's glob as a regular expression: `*` and `?` match within a folder, `**` across folders."""
    parts: list[str] = []
    in_group = False
    position = 0
    while position < len(glob):
        char = glob[position]
        if glob.startswith("**", position):
            part, position = ".*", position + 1
        elif char == "\\":
            part, position = _escaped(glob, position)
        elif char == "[":
            part, position = _bracket(glob, position)
        elif char in "{}," and (in_group or char == "{"):
            part, in_group = _group(char, in_group)
        else:
            part = _SPECIAL.get(char, re.escape(char))
        parts.append(part)
        position += 1
    if in_group:
        raise PatternError("a '{' is not closed")
    return "".join(parts)


def _escaped(glob: str, position: int) -> tuple[str, int]:
    if position + 1 == len(glob):
        raise PatternError("it ends in a backslash")
    return re.escape(glob[position + 1]), position + 1


def _bracket(glob: str, position: int) -> tuple[str, int]:
    end = glob.find("]", position + 2)
    if end < 0:
        raise PatternError("a '[' is not closed")
    body = glob[position + 1 : end]
    if body.startswith("!"):
        return f"[^/{''.join(map(_range_text, _ranges(body[1:])))}]", end
    inside = "".join(_range_text(part) for ends in _ranges(body) for part in _without_slash(*ends))
    return f"[{inside}]" if inside else _NOTHING, end


def _ranges(body: str) -> Iterator[tuple[int, int]]:
    """The characters of a bracket as ranges of code points, both ends included."""
    position = 0
    while position < len(body):
        low = high = ord(body[position])
        if body[position + 1 : position + 2] == "-" and position + 2 < len(body):
            high = ord(body[position + 2])
            if high < low:
                raise PatternError(f"the range '{body[position : position + 3]}' ends before it begins")
            position += 2
        position += 1
        yield low, high


def _without_slash(low: int, high: int) -> Iterator[tuple[int, int]]:
    """A range without the slash, which no bracket matches."""
    slash = ord("/")
    if not low <= slash <= high:
        yield low, high
        return
    if low < slash:
        yield low, slash - 1
    if high > slash:
        yield slash + 1, high


def _range_text(ends: tuple[int, int]) -> str:
    return f"\\x{{{ends[0]:X}}}-\\x{{{ends[1]:X}}}"


def _group(char: str, in_group: bool) -> tuple[str, bool]:
    if char == "{":
        if in_group:
            raise PatternError("a '{' stands inside of another")
        return "(?:(?:", True
    return ("))", False) if char == "}" else (")|(?:", True)
