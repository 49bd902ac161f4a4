"""Short forms of values for `print` and the Python prompt: a sentence or a few fields, and not every field."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Kind = TypeVar("Kind", bound=type)


def shown_as_sentence(kind: Kind) -> Kind:
    """Decorates a report class with a `sentence`: `str()` is the sentence, `repr()` the class and the sentence.

    It stands above `@dataclass`, whose own forms list every field.
    """
    setattr(kind, "__str__", lambda self: str(self.sentence))  # noqa: B010
    return shown_as("{0.sentence}")(kind)


def shown_as(words: str) -> Callable[[Kind], Kind]:
    """Decorates a class with a `repr()` of its name and these words, where `{0.name}` is the value's `name`."""
    return shown_by(words.format)


def shown_by(words: Callable[[Any], str | None]) -> Callable[[Kind], Kind]:
    """Decorates a class with a `repr()` of its name and the words of a value."""

    def decorate(kind: Kind) -> Kind:
        setattr(kind, "__repr__", lambda self: f"<{type(self).__name__}: {words(self)}>")  # noqa: B010
        return kind

    return decorate
