"""Which files are an input's, by their names: hidden ones, and Java's PathMatcher (`glob:`, `regex:`) as regexes."""

from __future__ import annotations

import re

_SPECIAL = {"*": "[^/]*", "?": "[^/]"}


class PatternError(ValueError):
    """A pattern that cannot be read; the message says why."""


def is_hidden(name: str) -> bool:
    """Whether a file or folder is no data, by its name: `_SUCCESS`, `.part-0.crc`, what is not whole yet."""
    return name.startswith((".", "_"))


def compile_path_pattern(text: str) -> re.Pattern[str]:
    """The pattern as a regular expression for whole paths. A text without `glob:` or `regex:` is a glob."""
    syntax, colon, body = text.partition(":")
    if not colon or syntax not in {"glob", "regex"}:
        syntax, body = "glob", text
    if not body:
        raise PatternError("it is empty")
    try:
        return re.compile(body if syntax == "regex" else glob_to_regex(body), re.DOTALL)
    except re.error as error:
        raise PatternError(str(error)) from error


def glob_to_regex(glob: str) -> str:
    r"""Java's glob: `*` and `?` stay within a folder, `**` crosses folders, `[..]` `{a,b}` and `\` as usual."""
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
    negated = body.startswith("!")
    inside = re.sub(r"([\\\[\]^&|~])", r"\\\1", body.removeprefix("!"))
    return f"(?!/)[{'^' if negated else ''}{inside}]", end


def _group(char: str, in_group: bool) -> tuple[str, bool]:
    if char == "{":
        if in_group:
            raise PatternError("a '{' stands inside of another")
        return "(?:(?:", True
    return ("))", False) if char == "}" else (")|(?:", True)
