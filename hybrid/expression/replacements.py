r"""Parses replacements of REGEXPREPLACE, for all engines: `$1` (Java), `\1` (SQL) and `${name}` are groups.

A backslash escapes any other character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_PART = re.compile(
    r"[$\\](?P<number>[0-9])|\$\{(?P<name>\w+)\}|\\(?P<plain>.)|(?P<text>[^$\\]+|.)", re.ASCII | re.DOTALL
)


def replacement_parts(template: str) -> Iterator[str | int | tuple[str]]:
    """The parts of a template: texts, groups by number, and groups by name in a tuple. A lone `$` is a text."""
    for match in _PART.finditer(template):
        if match["number"] is not None:
            yield int(match["number"])
        elif match["name"] is not None:
            yield (match["name"],)
        else:
            yield match["plain"] or match["text"]
