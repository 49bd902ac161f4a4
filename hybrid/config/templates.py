r"""Fills variables in job specs, in the syntax of Pinot's Groovy templates, when the key that holds them is read.

`${name}` and `$name` are filled from `--var`; `today` and `yesterday` are days in UTC; `${name ?: 'text'}` has a
default; `\$` is a dollar sign. Other Groovy is not run: a spec is data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from hybrid.errors import SpecError, meant

_TOKEN = re.compile(
    r"""(?P<dollar>\\\$)
    | \$\{filePathPattern:[^}]*\}                                # of segment.name.template, which is filled per file
    | (?P<reference>\$\{(?:env|file):[^{}]*\})                    # of a secret, which is read where it is used
    | \$\{\s*(?P<name>[A-Za-z_][A-Za-z0-9_.\-]*)\s*
        (?:\?:\s*(?P<default>'[^']*'|"[^"]*")\s*)?\}
    | \$(?P<bare>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<code>\$\{[^}]*\}?|<%.*?(?:%>|\Z))""",
    re.VERBOSE | re.DOTALL,
)


_SECRET_PLACE = re.compile(r"pinotFSSpecs\[\d+\]\.configs\.(?:accessKey|secretKey)")


def built_in_dates(now_ms: int) -> dict[str, str]:
    """The values of Pinot's `today` and `yesterday` at a moment (epoch ms): days in UTC, `2021-09-24`."""
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    return {"today": f"{now:%Y-%m-%d}", "yesterday": f"{now - timedelta(days=1):%Y-%m-%d}"}


def fill(node: object, variables: Mapping[str, str], source: str, path: str) -> object:
    """`node` with every variable replaced. SpecError at `path` for a variable that is not set, and for Groovy code."""
    if isinstance(node, str):
        return _TOKEN.sub(_filler(variables, source, path), node)
    if isinstance(node, dict):
        return {
            key: fill(value, variables, source, f"{path}.{key}" if path else str(key)) for key, value in node.items()
        }
    if isinstance(node, list):
        return [fill(value, variables, source, f"{path}[{position}]") for position, value in enumerate(node)]
    return node


def names_in(node: object) -> Iterator[str]:
    """The names of all variables in `node`."""
    if isinstance(node, str):
        yield from (name for match in _TOKEN.finditer(node) if (name := match["name"] or match["bare"]))
    elif isinstance(node, dict):
        for value in node.values():
            yield from names_in(value)
    elif isinstance(node, list):
        for value in node:
            yield from names_in(value)


def _filler(variables: Mapping[str, str], source: str, path: str) -> Callable[[re.Match[str]], str]:
    def value(match: re.Match[str]) -> str:
        if match["code"]:
            message = f"'{match[0][:100]}' is Groovy code, which is not run. Give the value by a variable: ${{name}}."
            raise SpecError.at(source, path, message)
        if match["dollar"]:
            return "$"
        if match["reference"] and not _SECRET_PLACE.fullmatch(path):
            message = f"'{match[0][:100]}' is a reference, which only accessKey and secretKey of pinotFSSpecs may be."
            raise SpecError.at(source, path, message)
        name = match["name"] or match["bare"]
        if name is None:
            return match[0]
        if match["default"] and not variables.get(name):
            return match["default"][1:-1]
        if name not in variables:
            hint = f"hybrid job run SPEC.yml --var {name}=VALUE; a dollar sign that is meant is written \\$."
            raise SpecError.at(source, path, f"{match[0]} is not set.{meant(name, variables)}", hint=hint)
        return variables[name]

    return value
