"""Bytes from a thread that makes them to the event loop that sends them. The thread waits for a slow reader."""

from __future__ import annotations

import asyncio
import threading
from collections import deque

from hybrid.errors import TIMEOUT, HybridError, QueryError
from hybrid.files.results.output_file import OutputStream

_CHUNK_BYTES = 256 * 1024
_CHUNKS_MAX = 4
# A client that takes nothing for so long has stopped. What it holds is for others then.
STALL_S = 60.0


class ReaderGone(HybridError):
    """The client has disconnected, so nobody reads the rest."""

    code = "reader-gone"


class ByteChannel(OutputStream):
    """The output of one response. `write`, `flush` and `end` are for the thread, the rest for the event loop.

    At most `_CHUNKS_MAX` chunks wait. A write waits for room, and fails once the reader has gone or has stalled.
    """

    can_restart = False

    def __init__(self, loop: asyncio.AbstractEventLoop, stall_s: float | None = None) -> None:
        self.name, self.bytes = "the response", 0
        self._loop, self.stall_s = loop, STALL_S if stall_s is None else stall_s
        self._changed = threading.Condition()
        self._ready = asyncio.Event()
        self._gathered, self._chunks = bytearray(), deque[bytes]()
        self._is_closed = self._has_ended = False
        self.has_begun = False  # bytes were passed on, so a response has begun
        self._error: BaseException | None = None

    def write(self, data: bytes | memoryview) -> int:
        """Takes bytes. ReaderGone or QueryError when they will not be read."""
        self._gathered += data
        self.bytes += len(data)
        if len(self._gathered) >= _CHUNK_BYTES:
            self.flush()
        return len(data)

    def flush(self) -> None:
        """Passes on what was gathered."""
        if not self._gathered:
            return
        chunk, self._gathered = bytes(self._gathered), bytearray()
        with self._changed:
            while len(self._chunks) >= _CHUNKS_MAX and not self._is_closed:
                if not self._changed.wait(self.stall_s):
                    self._is_closed = True
                    raise QueryError(f"The client has read nothing for {self.stall_s:g} s.", pinot_code=TIMEOUT)
            if self._is_closed:
                raise ReaderGone("The client has gone.")
            self._chunks.append(chunk)
            self.has_begun = True
        self._wake()

    def restart(self) -> None:
        """Takes back what was written, as long as nothing was passed on."""
        if self.has_begun:
            super().restart()
        self._gathered, self.bytes = bytearray(), 0

    def end(self, error: BaseException | None = None) -> None:
        """Nothing follows; `error` says why when the result is not whole."""
        with self._changed:
            self._has_ended, self._error = True, error
        self._wake()

    async def next_chunk(self) -> bytes | None:
        """The next bytes, or None at the end of a whole result. Raises the error of one that is not whole."""
        while True:
            with self._changed:
                if self._chunks:
                    chunk = self._chunks.popleft()
                    self._changed.notify_all()
                    return chunk
                if self._has_ended:
                    if self._error is not None:
                        raise self._error
                    return None
                self._ready.clear()
            await self._ready.wait()

    def close(self) -> None:
        """The reader has gone: the thread's next write fails."""
        with self._changed:
            self._is_closed = True
            self._chunks.clear()
            self._changed.notify_all()

    def _wake(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ready.set)
