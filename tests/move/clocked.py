"""A table on disk with a clock of its own, for acts of upkeep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hybrid.lake.commit_context import CommitContext
from hybrid.progress import Silent
from tests.query.halves import Halves

DAY = 86_400_000


@dataclass
class Clocked(Silent):
    """`now` is the clock, in ms. `meanwhile` happens once, when something is said."""

    halves: Halves
    shared: CommitContext
    now: int = 10 * DAY
    meanwhile: Callable[[], object] | None = None
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.bench = CommitContext(lambda: self.shared.spark, lambda: self.now, self)

    def say(self, message: str) -> None:
        self.said.append(message)
        happens, self.meanwhile = self.meanwhile, None
        if happens is not None:
            happens()
