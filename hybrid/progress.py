"""Progress reports of long work.

The command line displays them; a library call is silent unless it is given a reporter.
"""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """`say` reports a milestone in one sentence; `step` the progress of a labelled phase (total None: unknown)."""

    def say(self, message: str) -> None:
        """A milestone or a warning."""

    def step(self, label: str, done: int, total: int | None) -> None:
        """`done` of `total` units of `label`; the phase ends when `done == total`."""


class Silent:
    """A reporter that ignores all reports."""

    def say(self, message: str) -> None:
        """Ignore the message."""

    def step(self, label: str, done: int, total: int | None) -> None:
        """Ignore the step."""


def counted(count: int, noun: str) -> str:
    """`1 row`, `7 rows`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
