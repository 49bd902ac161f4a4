"""Pauses between attempts that grow while the attempts fail."""

from __future__ import annotations


class Backoff:
    """The next pause in seconds: `first_s`, then twice the last one, at most `longest_s`. Used by one thread."""

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s, self._longest_s = first_s, longest_s
        self._next_s = first_s

    def next_s(self) -> float:
        """Return the pause before the next attempt."""
        pause_s, self._next_s = self._next_s, min(2 * self._next_s, self._longest_s)
        return pause_s

    def reset(self) -> None:
        """Start with the first pause again, after a success."""
        self._next_s = self._first_s
