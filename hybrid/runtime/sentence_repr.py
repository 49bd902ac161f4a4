"""Short forms of reports for `print` and the Python prompt: the sentence, and not every field."""

from __future__ import annotations

from typing import TypeVar

Report = TypeVar("Report", bound=type)


def shown_as_sentence(kind: Report) -> Report:
    """Decorates a report class with a `sentence`: `str()` is the sentence, `repr()` the class and the sentence.

    It stands above `@dataclass`, whose own forms list every field.
    """
    setattr(kind, "__repr__", lambda self: f"<{type(self).__name__}: {self.sentence}>")  # noqa: B010
    setattr(kind, "__str__", lambda self: str(self.sentence))  # noqa: B010
    return kind
