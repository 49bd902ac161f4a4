"""How long work tells what it does. The command line draws it; a library call is silent unless it is given one."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """`say` a milestone in one sentence; `step` how far a labelled stretch of work has come (total None: unknown)."""

    def say(self, message: str) -> None:
        """A milestone or a warning."""

    def step(self, label: str, done: int, total: int | None) -> None:
        """`done` of `total` units of `label`; a stretch ends when `done == total`."""


class Silent:
    """Says nothing."""

    def say(self, message: str) -> None:
        """Nothing."""

    def step(self, label: str, done: int, total: int | None) -> None:
        """Nothing."""


def counted(count: int, noun: str) -> str:
    """`1 row`, `7 rows`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
