"""A short-lived cache of what the console's pages show of all tables, shared by all viewers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

from hybrid.home.accounts import reads_only

_KEPT_S = 2.0
_SHARE = 20  # of the time that looking takes: so much longer the result is kept, which bounds the work to a twentieth
_TABLES_MAX = 100
Value = TypeVar("Value")


class StatusCache(Generic[Value]):
    """Caches the result of `look` for two seconds, or longer where it takes long.

    Thread-safe; concurrent callers share one call. Accounts that may only read see less, so they share their own.
    """

    def __init__(self, look: Callable[[], Value], kept_s: float = _KEPT_S) -> None:
        self._look, self._kept_s = look, kept_s
        self._one_looks = threading.Lock()
        self._found: dict[bool, tuple[float, Value]] = {}

    def get(self) -> Value:
        """Return the result, not older than the cache allows."""
        requested_at = time.monotonic()
        with self._one_looks:
            key = reads_only()
            found = self._found.get(key)
            if found is None or found[0] < requested_at:
                began = time.monotonic()
                value = self._look()
                ended = time.monotonic()
                self._found[key] = found = (ended + max(self._kept_s, _SHARE * (ended - began)), value)
            return found[1]

    def put(self, value: Value, looked_at: float) -> None:
        """Keep a result of another look, from `looked_at` (monotonic clock, s) on as long as one's own."""
        self._found[reads_only()] = (looked_at + self._kept_s, value)


class StatusCaches(Generic[Value]):
    """A `StatusCache` for each table that somebody looks at. Thread-safe."""

    def __init__(self, look: Callable[[str], Value]) -> None:
        self._look = look
        self._one_adds = threading.Lock()
        self._caches: dict[str, StatusCache[Value]] = {}

    def get(self, table: str) -> Value:
        """Return the result for a table, not older than its cache allows."""
        return self._cache(table).get()

    def put(self, table: str, value: Value, looked_at: float) -> None:
        """Keep the result of another look for a table, see `StatusCache.put`."""
        self._cache(table).put(value, looked_at)

    def _cache(self, table: str) -> StatusCache[Value]:
        with self._one_adds:
            if table not in self._caches and len(self._caches) >= _TABLES_MAX:
                self._caches.clear()
            return self._caches.setdefault(table, StatusCache(partial(self._look, table)))
