"""The settings file of a home as a backup keeps it: without secrets, server, database and store that it used."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Set
from typing import Any

from hybrid.config.setting_keys import STORE_FILES
from hybrid.schema.secrets import hides, names_secret

_KEY = re.compile(r"""\s*["']?([A-Za-z0-9_.\-]+)["']?\s*=""")
_SECTION = re.compile(r"\s*\[")
_OTHERS = frozenset({"server", "token", "catalog", "warehouse"})
# A comment, or before it a string, in which a number sign begins none. Strings over several lines come first.
_TOKEN = re.compile(r'"""(?:\\.|[^\\])*?"""|\'\'\'.*?\'\'\'|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|[ \t]*#[^\n]*', re.DOTALL)
_LOGIN = re.compile(r"://[^/@\s]*:[^/@\s]*@")
_HEADER = re.compile(r"""\s*\[\[?([A-Za-z0-9_.\-"' ]+)\]\]?\s*""")
_PINNING, _MASTER, _WORKER_FILES = "pinning", "spark.master", "spark.worker_files"


def portable_settings(text: str) -> tuple[str | None, list[str]]:
    """The text without secrets, `server`, `token`, `catalog`, `warehouse` and comments, and the keys left out.

    What needs the store of `warehouse` is left out too: the tables of a restored home are in its folder.
    A line is one of a secret by its key, or by a value with `password=` or the like. Comments may hold former secrets.
    The text is None when the rest cannot be read as TOML, or still holds a secret: it may be spread over lines.
    """
    lines, left_out, in_section = list[str](), list[str](), False
    bare, store_keys = _without_store(_without_comments(text))
    for line in bare.split("\n"):
        in_section = in_section or _SECTION.match(line) is not None
        match = _KEY.match(line)
        if match is not None and (
            (match[1] in _OTHERS and not in_section) or hides(match[1]) or _names_secret(line[match.end() :])
        ):
            left_out.append(match[1])
        else:
            lines.append(line)
    left_out += store_keys
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


def _without_store(text: str) -> tuple[str, list[str]]:
    """The text without the settings that need the tables to be on a store, and their names."""
    try:
        keys = _store_keys(tomllib.loads(text))
    except tomllib.TOMLDecodeError:
        return text, []
    kept, left_out = list[str](), dict[str, None]()
    for name, part in _parts(text):
        key = next((key for key in sorted(keys) if name == key or name.startswith(f"{key}.")), None)
        if key is None and _KEY.match(part) and any(key.startswith(f"{name}.") for key in keys):
            key = name  # an inline table
        if key is None:
            kept.append(part)
        else:
            left_out[key] = None
    return "\n".join(kept), list(left_out)


def _store_keys(document: dict[str, Any]) -> Set[str]:
    """The settings of a file that need a store: of Spark, its workers' files, and a master that does not share ours."""
    spark = document.get("spark")
    spark = spark if isinstance(spark, dict) else {}
    master, has_store = str(spark.get("master", "local")), spark.get("worker_files") == STORE_FILES
    return {
        *([_PINNING] if _PINNING in document else []),
        *([_WORKER_FILES] if has_store else []),
        *([_MASTER] if master.startswith("sc://") or (has_store and not master.startswith("local")) else []),
    }


def _parts(text: str) -> Iterator[tuple[str, str]]:
    """Each header and setting, over however many lines, and each other line, with the dotted name of its place."""
    section, name, lines = "", "", list[str]()
    for line in text.split("\n"):
        if not lines:
            header, key = _HEADER.fullmatch(line), _KEY.match(line)
            section = re.sub(r"[\"'\s]", "", header[1]) if header else section
            name = f"{section}.{key[1]}".removeprefix(".") if key else section
        lines.append(line)
        if not _KEY.match(lines[0]) or _is_toml("\n".join(lines)):
            yield name, "\n".join(lines)
            lines = []
    if lines:
        yield name, "\n".join(lines)


def _is_toml(text: str) -> bool:
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return False
    return True


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
