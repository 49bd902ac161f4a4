"""The settings file of a home as a backup keeps it: without secrets, server, database and store that it used."""

from __future__ import annotations

import re
import tomllib

from hybrid.schema.secrets import hides, names_secret

_KEY = re.compile(r"""\s*["']?([A-Za-z0-9_.\-]+)["']?\s*=""")
_SECTION = re.compile(r"\s*\[")
_OTHERS = frozenset({"server", "token", "catalog", "warehouse"})
# A comment, or before it a string, in which a number sign begins none. Strings over several lines come first.
_TOKEN = re.compile(r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|[ \t]*#[^\n]*', re.DOTALL)
_LOGIN = re.compile(r"://[^/@\s]*:[^/@\s]*@")


def portable_settings(text: str) -> tuple[str | None, list[str]]:
    """The text without secrets, `server`, `token`, `catalog`, `warehouse` and comments, and the keys left out.

    A line is one of a secret by its key, or by a value with `password=` or the like. Comments may hold former secrets.
    The text is None when the rest cannot be read as TOML, or still holds a secret: it may be spread over lines.
    """
    lines, left_out, in_section = list[str](), list[str](), False
    for line in _without_comments(text).split("\n"):
        in_section = in_section or _SECTION.match(line) is not None
        match = _KEY.match(line)
        if match is not None and (
            (match[1] in _OTHERS and not in_section) or hides(match[1]) or _names_secret(line[match.end() :])
        ):
            left_out.append(match[1])
        else:
            lines.append(line)
    rest = "\n".join(lines)
    try:
        document = tomllib.loads(rest)
    except tomllib.TOMLDecodeError:
        return None, left_out
    return (None if _has_secret(document) else rest), left_out


def _without_comments(text: str) -> str:
    """The text without comments; lines that held nothing else are gone."""
    bare = _TOKEN.sub(lambda match: "" if match[0].lstrip().startswith("#") else match[0], text)
    pairs = zip(text.split("\n"), bare.split("\n"), strict=True)
    return "\n".join(line for before, line in pairs if line.strip() or not before.strip())


def _names_secret(value: str) -> bool:
    """Whether a value names a secret in itself: `sasl.jaas.config=...`, `-Dstore.password=...`, a URL with a login."""
    return _LOGIN.search(value) is not None or names_secret(value)


def _has_secret(document: object) -> bool:
    """Whether a secret was not on a line of its own, as in an inline table or a list."""
    if isinstance(document, dict):
        return any(hides(key) or _has_secret(value) for key, value in document.items())
    if isinstance(document, list):
        return any(_has_secret(item) for item in document)
    return isinstance(document, str) and _names_secret(document)
