"""How many statements wait and run at once, of everybody and of one account; and those whose client has gone."""

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

T = TypeVar("T")
TOO_MANY = 429  # Pinot's TOO_MANY_REQUESTS
WORKERS = 16
# More statements of one account than this gain it nothing, and leave the others so much less of the processors.
RUNNING_OF_ONE = min(WORKERS // 2, max(2, os.cpu_count() or 1))
# Threads of their own, each with its connection: no query waits for a slow path, and none takes a new connection.
_THREADS = ThreadPoolExecutor(WORKERS, thread_name_prefix="query")
# From when on it is looked whether the client is still there: most statements are over before.
_WATCHED_S = 0.25


class Admission:
    """The statements of one server that wait or run. For the event loop's thread."""

    def __init__(self, most: int = 512, most_of_one: int = 128, running_of_one: int = RUNNING_OF_ONE) -> None:
        self._most, self._most_of_one, self._running_of_one = most, most_of_one, running_of_one
        self._all = 0
        self._by_account: Counter[str] = Counter()
        self._lanes: dict[str, asyncio.Semaphore] = {}

    async def run(self, request: Request, account: str | None, work: Callable[[], T], leave: Callable[[], None]) -> T:
        """Does `work` in a thread of its own; `leave` is called when the client goes before it is done.

        QueryError 429 when too many wait already. Of one account `running_of_one` run, and the rest wait; without
        accounts everybody shares all threads.
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
