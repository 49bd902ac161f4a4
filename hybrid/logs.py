"""The logs of a home: one JSON object per line in `<home>/logs/<role>.log`, rotated by size, and read back as one log.

Several processes append to one file (every command writes `cli.log`). So a record is a single write, and a writer first
checks whether another process has rotated the file. A log that cannot be written never stops the work.
"""

from __future__ import annotations

import atexit
import heapq
import json
import logging
import math
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

from hybrid.errors import HybridError
from hybrid.runtime.rotated_file import RotatedFile, RotatedReader, Rotation

AUDIT = "audit"  # changes made over HTTP, and by whom: a file of no role, rotated separately
ROLES = ("cli", "query", "pipeline", "serve", AUDIT)
SIZE_MAX = 10 * 1024 * 1024
KEPT = 5

_POLL_S = 0.2
_LATER_S, _TOGETHER_MAX = 0.2, 200
_DISORDER = 10_000  # on a busy machine, records of processes that write one file may be out of order by this number
_FORMATTER = logging.Formatter()
_CONTEXT: ContextVar[Mapping[str, str]] = ContextVar("hybrid_log_context", default=MappingProxyType({}))


@contextmanager
def log_context(
    *,
    table: str | None = None,
    request_id: str | None = None,
    run_id: str | None = None,
    account: str | None = None,
) -> Iterator[None]:
    """Add these fields, and those of enclosing contexts, to every record of this thread or task."""
    fields = {"table": table, "request_id": request_id, "run_id": run_id, "account": account}
    token = _CONTEXT.set({**_CONTEXT.get(), **{name: value for name, value in fields.items() if value is not None}})
    try:
        yield
    finally:
        _CONTEXT.reset(token)


def setup_logging(folder: Path, role: str) -> None:
    """From now on log to `<folder>/<role>.log` only, in this process. The file is created with the first record."""
    for handler in _put(LogHandler(lambda: folder, role)):
        handler.close()


@contextmanager
def logging_to(folder: Callable[[], Path], role: str) -> Iterator[None]:
    """Log to `folder()` within this context, called with the first record. A nested context replaces the outer one."""
    outer = _put(LogHandler(folder, role))
    try:
        yield
    finally:
        for handler in _put(*outer):
            handler.close()


def written_log() -> Path | None:
    """The file that holds this process's last record; None when writing failed, or without a record."""
    handlers = [handler for handler in logging.getLogger().handlers if isinstance(handler, LogHandler)]
    return handlers[-1].written if handlers else None


def _put(*handlers: LogHandler) -> list[LogHandler]:
    """Replace our current handlers by these, once they have the records that were collected. Returns the former."""
    for later in _COLLECTORS:
        later.flush()
    root = logging.getLogger()
    before = [handler for handler in root.handlers if isinstance(handler, LogHandler)]
    root.handlers = [*(handler for handler in root.handlers if handler not in before), *handlers]
    logging.getLogger("hybrid").setLevel(logging.INFO)
    return before


class LogHandler(logging.Handler):
    """Appends records to `<folder()>/<role>.log`.

    `written` is the file of the last record, None when writing failed.
    """

    def __init__(self, folder: Callable[[], Path], role: str, size_max: int = SIZE_MAX, kept: int = KEPT) -> None:
        super().__init__()
        self._folder, self._role, self._rotation = folder, role, Rotation(size_max, files_max=kept)
        self._file: RotatedFile | None = None
        self.written: Path | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Append one record; errors are ignored."""
        self.write(_line(record, self._role, _CONTEXT.get()))

    def emit_all(self, noted: Iterable[tuple[logging.LogRecord, Mapping[str, str]]]) -> None:
        """Append records with their contexts in one write; errors are ignored."""
        lines = b"".join(_line(record, self._role, context) for record, context in noted)
        self.acquire()
        try:
            self.write(lines)
        finally:
            self.release()

    def write(self, lines: bytes) -> None:
        """Append complete lines."""
        self.written = None
        with suppress(HybridError, OSError):
            if self._file is None:
                self._file = RotatedFile(self._folder() / f"{self._role}.log", self._rotation)
            self._file.append(lines)
            self.written = self._file.path

    def close(self) -> None:
        """Close the file, once no other thread writes to it."""
        self.acquire()
        try:
            if self._file is not None:
                self._file.close()
                self._file = None
        finally:
            self.release()
        super().close()


class Audit:
    """The audit records of changes over HTTP, in a separate file that other requests' records cannot displace."""

    def __init__(self, folder: Callable[[], Path]) -> None:
        self._logger = logging.Logger(__name__, logging.INFO)
        self._logger.addHandler(LogHandler(folder, AUDIT))

    def info(self, message: str, *values: object) -> None:
        """Append a record with the fields of this context."""
        self._logger.info(message, *values)


class Sampler:
    """Passes a limited number of records per second, and counts the rest. For one thread."""

    def __init__(self, most_per_s: int) -> None:
        self._most, self._second, self._count, self._left_out = most_per_s, 0, 0, 0

    def passes(self) -> bool:
        """Whether a record at this moment is written."""
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._count = second, 0
        self._count += 1
        if self._count > self._most:
            self._left_out += 1
            return False
        return True

    def left_out(self) -> int:
        """The number of dropped records since the last call."""
        count, self._left_out = self._left_out, 0
        return count


class Lasting:
    """Passes the first record of a condition that lasts, and then one a minute, so that it does not fill the log.

    For one thread; `every_s` is the minute.
    """

    def __init__(self, every_s: float = 60.0) -> None:
        self._every_s, self._passed_at = every_s, dict[str, float]()

    def passes(self, condition: str) -> bool:
        """Whether a record of the condition is written now."""
        now = time.monotonic()
        if now - self._passed_at.get(condition, -math.inf) < self._every_s:
            return False
        self._passed_at[condition] = now
        return True


class Later:
    """Records that are collected now and written together a moment later, so that no response waits for a file.

    They are in the log within a quarter of a second, at the latest when another log takes its place or the process
    exits normally.
    """

    def __init__(self, logger: logging.Logger) -> None:
        self._logger = logger
        self._noted: deque[tuple[logging.LogRecord, Mapping[str, str]]] = deque()
        self._some, self._one_writes = threading.Event(), threading.Lock()
        self._thread: threading.Thread | None = None
        _COLLECTORS.add(self)

    def info(self, message: str, *values: object) -> None:
        """Collect a record with the current time and context."""
        if not self._logger.isEnabledFor(logging.INFO):
            return
        record = self._logger.makeRecord(self._logger.name, logging.INFO, "", 0, message, values, None)
        self._noted.append((record, _CONTEXT.get()))
        if not self._some.is_set():
            self._some.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._write, name="log-later", daemon=True)
            self._thread.start()
            atexit.register(self.flush)

    def flush(self) -> None:
        """Write the collected records."""
        with self._one_writes:
            while self._noted:
                some = [self._noted.popleft() for _ in range(min(len(self._noted), _TOGETHER_MAX))]
                for handler in logging.getLogger().handlers:
                    if isinstance(handler, LogHandler):
                        handler.emit_all(some)

    def _write(self) -> None:
        while True:
            self._some.wait()
            time.sleep(_LATER_S)
            self._some.clear()
            self.flush()


_COLLECTORS: weakref.WeakSet[Later] = weakref.WeakSet()


def _line(record: logging.LogRecord, role: str, context: Mapping[str, str]) -> bytes:
    fields = {
        "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "level": record.levelname,
        "role": role,
        "logger": record.name,
        "message": _message(record),
        **context,
    }
    if record.exc_info and record.exc_info[0] is not None:
        fields["error"] = _FORMATTER.formatException(record.exc_info)
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception as error:  # whatever a library's arguments raise when they are formatted
        return f"{record.msg} ({type(error).__name__} in its arguments)"


def read_logs(
    folder: Path,
    table: str | None = None,
    follow: bool = False,
    *,
    level: str | None = None,
    last: int | None = None,
) -> Iterator[dict[str, Any]]:
    """The records of all roles by time, including rotated files; lines that are not records are skipped.

    `table` and `level` (`WARNING`, or above) filter the records. `last` limits them to the newest existing ones.
    `follow` continues forever with records as they are written.
    """
    files = [RotatedReader(folder / f"{role}.log") for role in ROLES]
    there: Iterable[dict[str, Any]] = _wanted(files, table, level)
    yield from there if last is None else deque(there, maxlen=last)
    while follow:
        time.sleep(_POLL_S)
        yield from _wanted(files, table, level)


def _wanted(files: list[RotatedReader], table: str | None, level: str | None) -> Iterator[dict[str, Any]]:
    """The unread records of the files, by time."""
    severity = logging.getLevelNamesMapping()
    least = severity[level] if level is not None else 0
    for record in heapq.merge(*(_in_order(file.unread()) for file in files), key=_time):
        if table in (None, record.get("table")) and severity.get(str(record.get("level")), least) >= least:
            yield record


def _in_order(records: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Almost ordered records in order of their time; records with equal times keep their order."""
    waiting: list[tuple[str, int, dict[str, Any]]] = []
    for position, record in enumerate(records):
        heapq.heappush(waiting, (_time(record), position, record))
        if len(waiting) > _DISORDER:
            yield heapq.heappop(waiting)[-1]
    while waiting:
        yield heapq.heappop(waiting)[-1]


def _time(record: dict[str, Any]) -> str:
    return str(record["ts"])
