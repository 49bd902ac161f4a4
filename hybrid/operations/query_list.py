"""The list of statements: those that run in this process, then those of the query log, newest first."""

from __future__ import annotations

import heapq
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from hybrid.clock import wall_clock_ms
from hybrid.errors import UsageError
from hybrid.home.accounts import ASKING_ACCOUNT, reads_only
from hybrid.home.query_log import DROPPED, RUNNING
from hybrid.runtime.json_values import epoch_ms, stamp
from hybrid.schema.moment import MOMENT_FORMS, parse_time

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.query_log import QueryLog

LIMIT, LIMIT_MAX = 100, 10_000
# Several processes write one file, each a moment after its statements have ended.
_DISORDER_MS = 10_000


@dataclass(frozen=True)
class QueryFilter:
    """Which statements are listed: the newest `limit` that meet every condition. None: any.

    `since` is a time, or a time ago (`2h`): statements that ended before it are left out.
    """

    slow: bool = False
    since: str | None = None
    account: str | None = None
    table: str | None = None
    limit: int = LIMIT


@dataclass(frozen=True)
class LoggedQuery:
    """A statement: who asked it when, how long it took, what it read and gave, and how it ended.

    `state` is RUNNING, DONE, FAILED, CANCELLED or REFUSED; DROPPED stands for `rows` statements that were not logged.
    `code` is Pinot's code of its error. `source` is `cache` or `files`, with `+stream` where rows came from Kafka.
    """

    id: str
    started_at: str
    duration_ms: float
    state: str
    slow: bool = False
    account: str | None = None
    client: str | None = None
    tables: tuple[str, ...] = ()
    source: str | None = None
    rows: int | None = None
    segments: int | None = None
    bytes: int | None = None
    revision: str | None = None
    code: int | None = None
    error: str | None = None
    statement: str = ""

    def __repr__(self) -> str:
        """One line, with the begin of the statement."""
        text = " ".join(self.statement.split())
        shown = text if len(text) <= 60 else f"{text[:57]}..."
        return f"<LoggedQuery {self.started_at} {self.state} {self.duration_ms:g} ms: {shown}>"


def list_queries(home: Home, wanted: QueryFilter) -> list[LoggedQuery]:
    """The statements that a filter leaves, newest first. An account that may only read gets its own.

    UsageError for a `since` that is no time, and for a limit out of its bounds.
    """
    home.require_folder()
    if not 1 <= wanted.limit <= LIMIT_MAX:
        raise UsageError(f"The limit is {wanted.limit}; it can be 1 to {LIMIT_MAX}.")
    since_ms = _since_ms(home, wanted.since)
    log = home.query_log
    found = (entry for entry in _all(log, since_ms) if _is_wanted(entry, wanted))
    return list(islice(found, wanted.limit))


def _since_ms(home: Home, since: str | None) -> int:
    if since is None:
        return 0
    instant = parse_time(since, home.now_ms())
    if isinstance(instant, str):
        raise UsageError(f"--since {since}: {instant}. {MOMENT_FORMS}.")
    return instant


def _all(log: QueryLog, since_ms: int) -> Iterator[LoggedQuery]:
    now_ms, now = wall_clock_ms(), time.monotonic()
    for running in log.running.list():
        took_s = now - running.began
        yield LoggedQuery(
            running.id,
            stamp(now_ms - round(took_s * 1000)),
            round(took_s * 1000, 3),
            RUNNING,
            log.is_slow(took_s),
            running.account,
            running.client,
            statement=log.text_of(running.sql or ""),
        )
    files = [_since(records, since_ms) for records in log.newest_first()]
    for ended_ms, record in heapq.merge(*files, key=lambda pair: -pair[0]):
        if ended_ms >= since_ms:
            yield _entry(log, record)


def _since(records: Iterator[Mapping[str, Any]], since_ms: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The records of a file with the time at which each statement ended. Older ones than `since_ms` are not read."""
    for record in records:
        try:
            ended_ms = epoch_ms(record["ts"]) + round(record.get("ms", 0))
        except (ValueError, TypeError):  # another program has written this line
            continue
        if ended_ms < since_ms - _DISORDER_MS:
            return
        yield ended_ms, record


def _entry(log: QueryLog, record: Mapping[str, Any]) -> LoggedQuery:
    if "dropped" in record:
        count = record["dropped"]
        text = f"{count} statements were not logged: too many came at once, or the disk was full."
        return LoggedQuery("", record["ts"], 0, DROPPED, rows=count, statement=text)
    duration_ms = record.get("ms", 0)
    fields = {name: record.get(name) for name in _COPIED}
    return LoggedQuery(
        id=str(record.get("id", "")),
        started_at=record["ts"],
        duration_ms=duration_ms,
        state=str(record.get("state", "")),
        slow=log.is_slow(duration_ms / 1000),
        tables=tuple(record.get("tables", ())),
        statement=str(record.get("statement", "")),
        **fields,
    )


_COPIED = ("account", "client", "source", "rows", "segments", "bytes", "revision", "code", "error")


def _is_wanted(entry: LoggedQuery, wanted: QueryFilter) -> bool:
    if reads_only() and entry.account != ASKING_ACCOUNT.get():
        return False
    if wanted.slow and not entry.slow:
        return False
    if wanted.account is not None and entry.account != wanted.account:
        return False
    return wanted.table is None or _is_about(entry, wanted.table)


def _is_about(entry: LoggedQuery, table: str) -> bool:
    """Whether a statement reads a table. One without a result has no revision: then its text has to name the table."""
    if entry.tables:
        return table.lower() in (name.lower() for name in entry.tables)
    name = rf"(?<![\w.]){re.escape(table)}(?:_OFFLINE|_REALTIME)?(?!\w)"
    return re.search(name, entry.statement, re.IGNORECASE) is not None
