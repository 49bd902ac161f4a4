"""Verbs that take dataclasses: on the wire the fields are plain keyword arguments."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import wraps
from typing import Any


def flat(**grouped: type[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorates a verb so that it takes the fields of each dataclass in place of the argument named here.

    The result's signature and annotations name every field: a server checks the arguments of a request by them.
    """

    def decorate(verb: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(verb)
        def call(home: Any, **arguments: Any) -> Any:
            values = {name: from_flat(kind, arguments) for name, kind in grouped.items()}
            return verb(home, **values, **{name: value for name, value in arguments.items() if name not in inside})

        inside = {field.name for kind in grouped.values() for field in fields(kind)}
        signature = inspect.signature(verb)
        own = [parameter for name, parameter in signature.parameters.items() if name not in grouped]
        added = [parameter for kind in grouped.values() for parameter in _parameters(kind)]
        hints = {name: hint for name, hint in verb.__annotations__.items() if name not in grouped}
        call.__annotations__ = {**hints, **{parameter.name: parameter.annotation for parameter in added}}
        vars(call)["__signature__"] = signature.replace(parameters=[*own, *added])
        return call

    return decorate


def from_flat(kind: type[Any], arguments: Mapping[str, Any]) -> Any:
    """The dataclass made of those arguments that are its fields."""
    return kind(**{field.name: arguments[field.name] for field in fields(kind) if field.name in arguments})


def _parameters(kind: type[Any]) -> list[inspect.Parameter]:
    hints = typing.get_type_hints(kind)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(kind)
    ]
