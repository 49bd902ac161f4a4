"""A connection to PostgreSQL that gives up when the database is silent.

PostgreSQL's `statement_timeout` is kept by the server: a server that is frozen, or behind a network that swallows
packets, never reports it. Its system may acknowledge what is sent, so limits of TCP do not help either.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any, TypeVar, cast

import psycopg
from psycopg.abc import PQGen

_Result = TypeVar("_Result")


class LimitedConnection(psycopg.Connection[Any]):
    """A connection that raises OperationalError, and is closed, after `silence_s` seconds without a byte.

    An answer that keeps coming may take longer. Applies to statements, commits and all else that waits.
    """

    silence_s = 5.0

    def wait(self, gen: PQGen[_Result], *arguments: Any, **named: Any) -> _Result:
        """Wait for an exchange of messages with the database."""
        return super().wait(cast("PQGen[_Result]", self._limited(gen)), *arguments, **named)

    def __del__(self, *_: Any) -> None:
        """End with a pool that was dropped, as connections of psycopg's own pool do, without its warning."""
        if hasattr(self, "pgconn"):
            self.close()

    def _limited(self, exchange: PQGen[_Result]) -> Generator[Any, Any, _Result]:
        """The same exchange. Its driver resumes it when the socket is ready, and otherwise several times a second."""
        limit_s = self.silence_s
        heard_at = time.monotonic()
        try:
            waits_for = next(exchange)
            while True:
                ready = yield waits_for
                if ready:
                    heard_at = time.monotonic()
                elif time.monotonic() - heard_at >= limit_s:
                    self.pgconn.finish()
                    raise psycopg.OperationalError(f"it has been silent for {limit_s:g} s")
                waits_for = exchange.send(ready)
        except StopIteration as end:
            return cast("_Result", end.value)
