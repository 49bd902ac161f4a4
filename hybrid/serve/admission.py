"""Admission control: limits of waiting and running statements, in total and per account; cancellation on disconnect."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

from starlette.requests import Request

from hybrid.errors import QueryError
from hybrid.home.query_log import TOO_MANY

T = TypeVar("T")
WORKERS = 16
# More statements of one account do not speed it up; they only take processors from other accounts.
RUNNING_OF_ONE = min(WORKERS // 2, max(2, os.cpu_count() or 1))
# Dedicated threads, each with its connection: no query waits for a slow route or opens a new connection.
_THREADS = ThreadPoolExecutor(WORKERS, thread_name_prefix="query")
# Disconnects are checked only after this delay: most statements end before it.
_WATCHED_S = 0.25


class Admission:
    """The waiting and running statements of one server. Use it on the event loop only."""

    def __init__(self, most: int = 512, most_of_one: int = 128, running_of_one: int = RUNNING_OF_ONE) -> None:
        self._most, self._most_of_one, self._running_of_one = most, most_of_one, running_of_one
        self._all = 0
        self._by_account: Counter[str] = Counter()
        self._lanes: dict[str, asyncio.Semaphore] = {}

    async def run(self, request: Request, account: str | None, work: Callable[[], T], leave: Callable[[], None]) -> T:
        """Run `work` in a thread; `leave` is called if the client disconnects before the end.

        QueryError 429 when too many statements wait. At most `running_of_one` statements of one account run, the
        others wait; without accounts all clients share all threads.
        """
        self._enter(account)
        try:
            if account is None:
                return await _watched(request, work, leave)
            async with self._lanes.setdefault(account, asyncio.Semaphore(self._running_of_one)):
                return await _watched(request, work, leave)
        finally:
            self._exit(account)

    def _enter(self, account: str | None) -> None:
        if self._all >= self._most:
            raise _refusal(f"{self._most} statements wait or run on this server already")
        if account is not None and self._by_account[account] >= self._most_of_one:
            raise _refusal(f"{self._most_of_one} statements of account '{account}' wait or run already")
        self._all += 1
        if account is not None:
            self._by_account[account] += 1

    def _exit(self, account: str | None) -> None:
        self._all -= 1
        if account is not None:
            self._by_account[account] -= 1
            if not self._by_account[account]:
                del self._by_account[account]
                self._lanes.pop(account, None)


def _refusal(sentence: str) -> QueryError:
    return QueryError(f"{sentence}.", pinot_code=TOO_MANY, hint="Ask again when some of them are done.")


async def _watched(request: Request, work: Callable[[], T], leave: Callable[[], None]) -> T:
    loop = asyncio.get_running_loop()
    watching: list[asyncio.Task[None]] = []

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        leave()

    future = loop.run_in_executor(_THREADS, copy_context().run, work)
    later = loop.call_later(_WATCHED_S, lambda: watching.append(loop.create_task(watch())))
    try:
        return await future
    finally:
        later.cancel()
        for task in watching:
            task.cancel()
