"""The settings file of a home as a backup keeps it: without secrets, and without the server that commands went to."""

from __future__ import annotations

import re
import tomllib

from hybrid.schema.secrets import hides

_KEY = re.compile(r"""\s*["']?([A-Za-z0-9_.\-]+)["']?\s*=""")
_SECTION = re.compile(r"\s*\[")
_OTHERS = frozenset({"server", "token"})


def portable_settings(text: str) -> tuple[str | None, list[str]]:
    """The text without lines of secrets, `server` and `token`, and the keys that were left out.

    The text is None when the rest cannot be read as TOML: a secret may be spread over lines.
    """
    lines, left_out, in_section = list[str](), list[str](), False
    for line in text.split("\n"):
        in_section = in_section or _SECTION.match(line) is not None
        match = _KEY.match(line)
        if match is not None and ((match[1] in _OTHERS and not in_section) or hides(match[1])):
            left_out.append(match[1])
        else:
            lines.append(line)
    rest = "\n".join(lines)
    try:
        document = tomllib.loads(rest)
    except tomllib.TOMLDecodeError:
        return None, left_out
    return (None if _has_secret(document) else rest), left_out


def _has_secret(document: object) -> bool:
    """Whether a value with a secret's key was not on a line of its own, as in an inline table."""
    if not isinstance(document, dict):
        return False
    return any(hides(key) or _has_secret(value) for key, value in document.items())
