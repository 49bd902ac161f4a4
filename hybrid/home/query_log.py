"""The query log of a home: each statement with who asked it, how long it took and how it ended.

It is kept in `<home>/logs/queries.log` and `slow_queries.log`, so that many small statements displace no slow one. A
statement only appends to a list in memory; one thread of the process writes a moment later. When that list is full, or
the disk, statements are dropped and counted.
"""

from __future__ import annotations

import atexit
import json
import logging
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from hybrid.clock import wall_clock_ms
from hybrid.errors import CANCELLED, HybridError, QueryError
from hybrid.home.accounts import ASKING_ACCOUNT
from hybrid.home.running_queries import RunningQueries
from hybrid.runtime.json_values import stamp
from hybrid.runtime.rotated_file import RotatedFile, RotatedReader, Rotation

if TYPE_CHECKING:
    from hybrid.config.settings import Settings

_LOG = logging.getLogger(__name__)
QUERIES, SLOW_QUERIES = "queries.log", "slow_queries.log"
TOO_MANY = 429  # Pinot's TOO_MANY_REQUESTS
DONE, FAILED, RUNNING, DROPPED = "DONE", "FAILED", "RUNNING", "DROPPED"
_STATES = {CANCELLED: "CANCELLED", TOO_MANY: "REFUSED"}

FLUSH_S = 0.2
# What waits to be written, at most; further statements are dropped.
_WAITING_MAX, _WAITING_CHARACTERS_MAX = 10_000, 16 * 1024 * 1024
_SQL_MAX, _ERROR_MAX = 10_000, 1000
_CHUNK_BYTES = 256 * 1024
_TIDY_S = 3600.0
_DAY_S = 86_400
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))  # `json.dumps` makes one for each call
Details = Callable[[], Mapping[str, object]]


@dataclass(slots=True)
class EndedQuery:
    """A statement that has ended. `took_s` includes its wait for a thread; `details` are further fields of its record.

    The writer's thread calls `details`, so the statement does not wait for it.
    """

    id: str
    sql: str
    account: str | None
    client: str
    ended_ms: int
    took_s: float
    state: str
    characters: int = 0  # of the whole statement, of which `sql` may be the begin; 0: `sql` is the whole
    rows: int | None = None
    code: int | None = None
    error: str | None = None
    details: Details | None = None


class QueryRecord:
    """A statement on its way into the log. `began` is when it was asked (monotonic; None: now)."""

    def __init__(
        self, log: QueryLog, sql: str, *, id: str, account: str | None, client: str, began: float | None = None
    ) -> None:
        self._log, self._sql, self._id, self._account, self._client = log, sql, id, account, client
        self._began = time.monotonic() if began is None else began

    def answered(self, rows: int, details: Details) -> None:
        """The statement has its result."""
        ended = self._ended(DONE)
        ended.rows, ended.details = rows, details
        self._log.add(ended)

    def failed(self, error: BaseException) -> None:
        """The statement has no result."""
        ended, code = self._ended(state_of(error)), _code_of(error)
        ended.code, ended.error = code, str(error)[:_ERROR_MAX] or type(error).__name__
        self._log.add(ended)

    def _ended(self, state: str) -> EndedQuery:
        took_s, characters = time.monotonic() - self._began, len(self._sql)
        sql = self._sql[:_SQL_MAX]  # a statement may have a million characters, and thousands may wait
        return EndedQuery(self._id, sql, self._account, self._client, wall_clock_ms(), took_s, state, characters)


class QueryLog:
    """The query log of a home, and the statements that run in this process.

    `dropped` counts the statements of this process that could not be written down. `waiting_max` statements with
    `waiting_characters_max` characters may wait for the writer.
    """

    def __init__(self, settings: Settings) -> None:
        self.running = RunningQueries()
        self.dropped = 0
        self.waiting_max, self.waiting_characters_max = _WAITING_MAX, _WAITING_CHARACTERS_MAX
        self._folder, self._slow_ms, self._shows_values = (
            settings.logs,
            settings.slow_query_ms,
            settings.query_log_values,
        )
        bytes_max, self._days = settings.query_log_bytes, settings.query_log_days
        self._is_on, size_max = bytes_max > 0, max(bytes_max // 10, 1)
        self._chunk_bytes = min(_CHUNK_BYTES, size_max)
        rotation = Rotation(size_max, bytes_max=bytes_max // 2, age_max_s=self._days * _DAY_S)
        self._files = {
            False: RotatedFile(self._folder / QUERIES, rotation),
            True: RotatedFile(self._folder / SLOW_QUERIES, rotation),
        }
        self._lock, self._one_writes = threading.Lock(), threading.Lock()
        self._waiting: list[EndedQuery] = []
        self._waiting_characters = self._untold = 0
        self._tidied_at = -_TIDY_S

    @contextmanager
    def recorded(self, sql: str, client: str) -> Iterator[QueryRecord]:
        """Record a statement of this process: the block calls `answered`, or fails. It is listed while it runs."""
        record = QueryRecord(self, sql, id=secrets.token_hex(8), account=ASKING_ACCOUNT.get(), client=client)
        with self.running.running(record._id, record._account, sql, client):
            try:
                yield record
            except BaseException as error:
                record.failed(error)
                raise

    def add(self, query: EndedQuery) -> None:
        """Note a statement that has ended; it is in the file within a quarter of a second."""
        if not self._is_on:
            return
        with self._lock:
            if len(self._waiting) >= self.waiting_max or self._waiting_characters >= self.waiting_characters_max:
                self.dropped += 1
                self._untold += 1
                return
            self._waiting.append(query)
            self._waiting_characters += len(query.sql)
            is_first = len(self._waiting) == 1
        if is_first:
            _WRITER.wake(self)

    def flush(self) -> None:
        """Write what waits, and remove what is too old."""
        with self._one_writes:
            with self._lock:
                queries, self._waiting, self._waiting_characters = self._waiting, [], 0
            if (not queries and not self._untold) or not self._folder.parent.is_dir():  # no log makes a home
                return
            lines: dict[bool, list[bytes]] = {is_slow: [] for is_slow in self._files}
            lost = 0
            for query in queries:
                try:
                    lines[self.is_slow(query.took_s)].append(self._line(query))
                except Exception:  # one statement must not cost the others
                    _LOG.exception("A statement cannot be written into the query log")
                    lost += 1
            lost += sum(self._write(is_slow, some) for is_slow, some in lines.items())
            with self._lock:
                self.dropped += lost
                self._untold += lost
                dropped = self._untold
            if dropped and not self._write(False, [_encoded({"ts": stamp(wall_clock_ms()), "dropped": dropped})]):
                with self._lock:
                    self._untold -= dropped
            if time.monotonic() - self._tidied_at > _TIDY_S:
                self._tidied_at = time.monotonic()
                self.remove_old()

    def remove_old(self) -> None:
        """Remove the files whose statements are all older than the setting allows."""
        for file in self._files.values():
            file.remove_old()

    def close(self) -> None:
        """Write what waits, and close the files."""
        self.flush()
        with self._one_writes:
            for file in self._files.values():
                file.close()

    def is_slow(self, took_s: float) -> bool:
        """Whether a statement of this duration counts as slow."""
        return took_s * 1000 >= self._slow_ms

    def text_of(self, sql: str, characters: int = 0) -> str:
        """A statement as the log shows it: with `?` for each constant if the settings say so, and never too long.

        `characters` is the length of the whole where `sql` is only its begin.
        """
        characters = characters or len(sql)
        if not self._shows_values:
            return _without_values(sql) if characters <= _SQL_MAX else f"(a statement of {characters} characters)"
        return sql if characters <= _SQL_MAX else f"{sql[:_SQL_MAX]}..."

    def newest_first(self) -> Sequence[Iterator[dict[str, Any]]]:
        """The records of each file, newest first. What waits in this process is written before."""
        self.flush()
        first_ms = wall_clock_ms() - self._days * _DAY_S * 1000
        return [self._kept(name, first_ms) for name in (SLOW_QUERIES, QUERIES)]

    def _kept(self, name: str, first_ms: int) -> Iterator[dict[str, Any]]:
        first = stamp(first_ms)
        for record in RotatedReader(self._folder / name).newest_first():
            if record["ts"] >= first:
                yield record

    def _write(self, is_slow: bool, lines: list[bytes]) -> int:
        """Append lines to a file; returns how many of them could not be written."""
        file, place = self._files[is_slow], 0
        while place < len(lines):
            end, size = place, 0
            while end < len(lines) and (end == place or size + len(lines[end]) <= self._chunk_bytes):
                size += len(lines[end])
                end += 1
            chunk = b"".join(lines[place:end])
            try:
                written = file.append(chunk)
            except (HybridError, OSError):
                return len(lines) - place
            if written < len(chunk):
                return len(lines) - place - chunk[:written].count(b"\n")
            place = end
        return 0

    def _line(self, query: EndedQuery) -> bytes:
        fields: dict[str, Any] = {
            "ts": stamp(query.ended_ms - round(query.took_s * 1000)),
            "id": query.id,
            "state": query.state,
            "ms": round(query.took_s * 1000, 3),
            "account": query.account,
            "client": query.client,
            "rows": query.rows,
            "code": query.code,
            "error": query.error if self._shows_values else None,  # errors quote values
            "statement": self.text_of(query.sql, query.characters),
        }
        if query.details is not None:
            fields |= query.details()
        return _encoded({name: value for name, value in fields.items() if value is not None})


def state_of(error: BaseException) -> str:
    """How a statement with this error has ended."""
    code = _code_of(error)
    return FAILED if code is None else _STATES.get(code, FAILED)


def _code_of(error: BaseException) -> int | None:
    if isinstance(error, KeyboardInterrupt | GeneratorExit):
        return CANCELLED
    return error.pinot_code if isinstance(error, HybridError) else None


class _Writer:
    """The thread of a process that writes its query logs."""

    def __init__(self) -> None:
        self._logs: deque[QueryLog] = deque()
        self._some, self._lock = threading.Event(), threading.Lock()
        self._thread: threading.Thread | None = None

    def wake(self, log: QueryLog) -> None:
        """Write a log in a moment."""
        self._logs.append(log)
        self._some.set()
        if self._thread is None or not self._thread.is_alive():
            with self._lock:
                if self._thread is None:
                    atexit.register(self._flush)
                if self._thread is None or not self._thread.is_alive():
                    self._thread = threading.Thread(target=self._write, name="query-log", daemon=True)
                    self._thread.start()

    def _write(self) -> None:
        while True:
            self._some.wait()
            time.sleep(FLUSH_S)
            self._some.clear()
            self._flush()

    def _flush(self) -> None:
        while self._logs:
            try:
                self._logs.popleft().flush()
            except Exception:  # a log must not end the logs of other homes
                _LOG.exception("The query log could not be written")


_WRITER = _Writer()


@lru_cache(256)
def _without_values(sql: str) -> str:
    from hybrid.sql.redaction import without_constants  # commands that log nothing need no parser

    try:
        return without_constants(sql)
    except QueryError:
        return f"(a statement of {len(sql)} characters that cannot be read)"


def _encoded(record: dict[str, Any]) -> bytes:
    return _JSON.encode(record).encode("utf-8", "backslashreplace") + b"\n"
