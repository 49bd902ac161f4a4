"""`${name}` in job specs, filled from `--var` when the key that holds it is read."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hybrid.errors import SpecError, suggestion

_VARIABLE = re.compile(r"\$\{\s*([A-Za-z_][A-Za-z0-9_.\-]*)\s*\}")


def fill(node: object, variables: Mapping[str, str], source: str, path: str) -> object:
    """`node` with every `${name}` replaced. SpecError at `path` for a variable that is not set."""
    if isinstance(node, str):
        return _fill_text(node, variables, source, path)
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
        yield from _VARIABLE.findall(node)
    elif isinstance(node, dict):
        for value in node.values():
            yield from names_in(value)
    elif isinstance(node, list):
        for value in node:
            yield from names_in(value)


def _fill_text(text: str, variables: Mapping[str, str], source: str, path: str) -> str:
    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in variables:
            hint = f"Add --var {name}=VALUE."
            raise SpecError.at(source, path, f"${{{name}}} is not set.{suggestion(name, variables)}", hint=hint)
        return variables[name]

    return _VARIABLE.sub(value, text)
