"""The meaning of UPPER, LOWER and TRIM in all engines.

Case is Unicode's simple mapping, as in DuckDB and in PostgreSQL's own locales: each character maps to one character.
Java maps some characters to several: there `ß` becomes `SS`.
"""

from __future__ import annotations

# The characters that TRIM removes (as Java's String.trim, except NUL), and those of LTRIM and RTRIM (as Java's `\s`).
TRIMMED = "".join(map(chr, range(1, 33)))
SPACES = " \t\n\x0b\f\r"
# Characters whose upper case is one character although Java's and Python's is several.
SINGLE_UPPER = (
    {"ß": "ẞ"}
    | {chr(low + step): chr(low + step + 8) for low in (0x1F80, 0x1F90, 0x1FA0) for step in range(8)}
    | {"ᾳ": "ᾼ", "ῃ": "ῌ", "ῳ": "ῼ"}
)
SINGLE_LOWER = {"İ": "i"}


def upper(text: str) -> str:
    """The text in upper case."""
    return text.upper() if text.isascii() else "".join(map(_upper, text))


def lower(text: str) -> str:
    """The text in lower case."""
    return text.lower() if text.isascii() else "".join(map(_lower, text))


def _upper(character: str) -> str:
    mapped = SINGLE_UPPER.get(character) or character.upper()
    return mapped if len(mapped) == 1 else character


def _lower(character: str) -> str:
    mapped = SINGLE_LOWER.get(character) or character.lower()
    return mapped if len(mapped) == 1 else character
