"""The callers of a server's statements, by their connections."""

from __future__ import annotations

import time

_ALONE_S = 0.1


class Callers:
    """The connections that statements arrive on. Use it on the event loop only."""

    def __init__(self) -> None:
        self._last: object = None
        self._others_at = 0.0

    def is_alone(self, connection: object) -> bool:
        """Whether no other connection was active lately, so that the event loop may answer without delaying others.

        With several active connections threads answer, which use all processors.
        """
        now = time.monotonic()
        if connection != self._last:
            self._last, self._others_at = connection, now
        return now - self._others_at > _ALONE_S
