"""Waits until Kafka's messages are committed: on the event loop, without blocking threads, in bounded number."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial

import anyio
from anyio.to_thread import run_sync

from hybrid.api.table import Table
from hybrid.table.boundary import TopicPartition

_LOOK_S = 0.1
_THREADS = 4


class CommitWaits:
    """The requests that wait, at most `most` at a time and `timeout_s` each. Use it on the event loop only.

    A cold Spark takes 10 s to its first commit. Kafka and the logs are read in a few dedicated threads, so slow reads
    do not delay other routes.
    """

    def __init__(self, most: int = 64, timeout_s: float = 30.0) -> None:
        self._timeout_s = timeout_s
        self._most, self._waiting = most, 0
        self._threads: anyio.CapacityLimiter | None = None

    async def wait(self, table: Table) -> bool:
        """Wait until the messages that Kafka holds now are committed; return whether they are.

        Beyond `most` waiting requests it does not wait: the caller uses the rows committed so far.
        """
        if self._waiting >= self._most:
            return False
        self._waiting += 1
        try:
            with anyio.move_on_after(self._timeout_s):
                ends = await run_sync(table.stream_ends, limiter=self._limiter())
                while ends is not None:
                    if await self._is_committed(table, ends):
                        return True
                    await asyncio.sleep(_LOOK_S)
            return False
        finally:
            self._waiting -= 1

    async def _is_committed(self, table: Table, ends: Mapping[TopicPartition, int]) -> bool:
        return await run_sync(partial(table.has_committed, ends), limiter=self._limiter())

    def _limiter(self) -> anyio.CapacityLimiter:
        if self._threads is None:  # created late, as it belongs to an event loop
            self._threads = anyio.CapacityLimiter(_THREADS)
        return self._threads
