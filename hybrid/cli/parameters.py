"""Values of a statement's parameters on the command line and in the shell."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any

import click

from hybrid.errors import UsageError

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_QUOTED = re.compile(r"'(?:[^']|'')*'", re.DOTALL)


def parameter_options(command: Callable[..., int]) -> Callable[..., int]:
    """Adds `--param` and `--param-json` to a command, which takes them together as `params`."""

    @wraps(command)
    def with_parameters(*args: Any, param: tuple[str, ...], param_json: tuple[str, ...], **others: Any) -> int:
        return command(*args, params=given_parameters(param, param_json), **others)

    typed = click.option(
        "--param-json", metavar="NAME=JSON", multiple=True, help="The value of :NAME as JSON; a list for IN."
    )(with_parameters)
    return click.option(
        "--param",
        metavar="NAME=VALUE",
        multiple=True,
        help="The value of :NAME in the statement: a number, else a text.",
    )(typed)


def given_parameters(plain: Iterable[str], typed: Iterable[str]) -> dict[str, Any] | None:
    """The parameters of `--param NAME=VALUE` and `--param-json NAME=JSON`; None without any.

    UsageError for a text that is no pair, no JSON, or names a parameter twice.
    """
    parameters: dict[str, Any] = {}
    pairs = [
        *((name, plain_value(text)) for name, text in _pairs("--param", plain)),
        *((name, json_value(name, text)) for name, text in _pairs("--param-json", typed)),
    ]
    for name, value in pairs:
        if name in parameters:
            raise UsageError(f"Parameter '{name}' has two values.")
        parameters[name] = value
    return parameters or None


def plain_value(text: str) -> Any:
    """The value of a text: a number where JSON writes one so, else the text."""
    if _NUMBER.fullmatch(text) is None:
        return text
    return int(text) if text.lstrip("-").isdigit() else float(text)


def json_value(name: str, text: str) -> Any:
    """The value of a JSON text. UsageError for any other text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"Parameter '{name}' is no JSON: {error}.",
            hint="""A list is written [1, 2], a text "open", a time {"type": "TIMESTAMP", "value": "2021-09-24"}.""",
        ) from None


def shell_value(name: str, text: str) -> Any:
    """The value of `.set NAME VALUE`: JSON where it is a list, an object, a number, true, false, null or quoted.

    A text may stand in single quotes, as in SQL.
    """
    if _QUOTED.fullmatch(text):
        return text[1:-1].replace("''", "'")
    if text[:1] in {"[", "{", '"'} or text in {"true", "false", "null"}:
        return json_value(name, text)
    return plain_value(text)


def _pairs(option: str, texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"{option} is written NAME=VALUE, not '{text}'.", hint=f"{option} status=open for :status")
        yield name, value
