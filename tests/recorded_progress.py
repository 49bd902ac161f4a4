"""Progress for tests that want to know what was said."""

from __future__ import annotations


class Heard:
    """Progress that remembers."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.steps: list[tuple[str, int, int | None]] = []

    def say(self, message: str) -> None:
        self.said.append(message)

    def step(self, label: str, done: int, total: int | None) -> None:
        self.steps.append((label, done, total))
