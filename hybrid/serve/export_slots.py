"""The bound of exports that run at once on a server, for all accounts."""

from __future__ import annotations

from dataclasses import dataclass

from hybrid.errors import BusyError

EXPORTS_MAX = 4


@dataclass
class ExportSlots:
    """The exports that run on one server. Use it on the event loop only."""

    most: int = EXPORTS_MAX
    running: int = 0

    def enter(self) -> None:
        """BusyError when as many exports run as can."""
        if self.running >= self.most:
            raise BusyError(
                f"{self.running} exports run on this server, which is its bound.",
                hint="Ask again when one of them is done.",
            )
        self.running += 1

    def leave(self) -> None:
        """An export has ended."""
        self.running -= 1
