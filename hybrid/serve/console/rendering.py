"""Templates of the console: Jinja2 with escaping always on, and the filters that its pages share."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from hybrid.home.accounts import ASKING_RIGHT, Right
from hybrid.runtime.byte_sizes import size_text
from hybrid.serve.authentication import who_asks
from hybrid.serve.console.static_files import asset, content_hash
from hybrid.sql.vocabulary import spelled_name

if TYPE_CHECKING:
    from jinja2 import Environment

FOLDER = Path(__file__).parent / "templates"
_VALUE_MAX = 300  # characters
UNKNOWN = "\N{EN DASH}"
MAIN_BLOCK = "main"


@cache
def environment() -> Environment:
    """The environment of all templates, built once per process."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(number=number, size=size, path=path_part, indented_json=indented_json, digest=digest)
    made.filters["spelled"] = spelled_name
    made.globals.update(asset=asset, may=may, has_accounts=has_account, account=account_view)
    made.globals.update(query="", poll_ms=0)  # of pages that do not update themselves
    # Imports at the top of a template do not reach a block that is rendered alone; globals do.
    macros = vars(made.get_template("_macros.html").module)
    made.globals.update({name: macro for name, macro in macros.items() if not name.startswith("_")})
    return made


def render(template: str, values: Mapping[str, Any], block: str | None = None) -> str:
    """Render a whole template, or one block of it as an update of a page; the main one where it has no such block."""
    found = environment().get_template(template)
    if block is None:
        return str(found.render(values))
    return "".join(found.blocks.get(block, found.blocks[MAIN_BLOCK])(found.new_context(dict(values))))


@cache
def templates_hash() -> str:
    """A hash of all templates and static files: pages that were rendered from others are out of date."""
    digest = hashlib.sha256(content_hash().encode())
    for path in sorted(FOLDER.rglob("*.html")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def may(right: str) -> bool:
    """Whether the current account has a right: `read`, `operate` or `admin`. Without accounts everybody has each."""
    asking = ASKING_RIGHT.get()
    return asking is None or asking >= Right[right.upper()]


def has_account() -> bool:
    """Whether the current request is made by an account."""
    return who_asks() is not None


def account_view() -> dict[str, str] | None:
    """Name and right of the current account; None without accounts."""
    name, right = who_asks(), ASKING_RIGHT.get()
    return None if name is None or right is None else {"name": name, "right": right.word}


def number(value: int | None) -> str:
    """`1234567` as `1,234,567`; a dash for an unknown number."""
    return UNKNOWN if value is None else f"{value:,}"


def size(value: int | None) -> str:
    """A number of bytes as `1.5 MB`; a dash for an unknown number."""
    return UNKNOWN if value is None else size_text(value)


def path_part(text: str) -> str:
    """A text as one part of a URL's path, or one value of its query."""
    return quote(str(text), safe="")


def value_text(value: object, characters_max: int = _VALUE_MAX) -> str | None:
    """A value of a row as a text of bounded length; None for NULL."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= characters_max else f"{text[:characters_max]}…"


def indented_json(value: object) -> str:
    """A document as people write it: JSON, indented by two spaces."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def digest(value: object) -> str:
    """A digest of a JSON value, which tells whether it is the same later."""
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
