"""The error for data that cannot be read, with its place."""

from __future__ import annotations


class Problem(Exception):
    """A place in a file that cannot be read: `at` continues the file's name (`, line 4`), `position` orders places."""

    def __init__(self, position: int, at: str, reason: str) -> None:
        super().__init__(position, at, reason)
        self.position, self.at, self.reason = position, at, reason
