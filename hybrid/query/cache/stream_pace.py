"""Decides whether a stream is busy: a busy one gets a consumer of its own, quiet ones share one."""

from __future__ import annotations

import math

# Busy: so many messages a second, or so many unread at once.
_BUSY_PER_S = 10
_BACKLOG = 10_000


class StreamPace:
    """The pace of one stream: busy after `busy_s` busy seconds, quiet after `quiet_s` others. Times are arguments."""

    def __init__(self, now: float, busy_s: int = 3, quiet_s: float = 10.0) -> None:
        self._busy_s, self._quiet_s = busy_s, quiet_s
        self.is_busy = False
        self._busy_at = -math.inf
        self._since, self._messages, self._busy_seconds = now, 0, 0

    def read(self, now: float, messages: int, unread: int) -> None:
        """Notes that messages were read; `unread` are known to be left."""
        self._messages += messages
        if unread > _BACKLOG:
            self.is_busy, self._busy_at = True, now
        elapsed_s = now - self._since
        if elapsed_s < 1:
            return
        if self._messages >= _BUSY_PER_S * elapsed_s:
            self._busy_at, self._busy_seconds = now, self._busy_seconds + 1
        else:
            self._busy_seconds = 0
        self._since, self._messages = now, 0
        if self._busy_seconds >= self._busy_s:
            self.is_busy = True
        elif now - self._busy_at > self._quiet_s:
            self.is_busy = False
