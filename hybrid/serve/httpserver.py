"""uvicorn without its own logs, and with each response written at once.

uvicorn writes the head and the body of a response by two system calls. They wake the client twice, which costs a
small response a twentieth of its time.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from hybrid.serve.connection_limits import ConnectionLimits, LimitedProtocol

_TOGETHER_MAX = 64 * 1024
_REQUESTS_END_S = 3


def http_server(app: ASGIApp, limits: ConnectionLimits | None = None) -> uvicorn.Server:
    """Return a uvicorn server that logs nothing by itself and trusts no header about the client's address."""
    config = uvicorn.Config(
        app,
        http=partial(OneWrite, limits or ConnectionLimits()),  # type: ignore[arg-type]
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_REQUESTS_END_S,
    )
    return uvicorn.Server(config)


class OneWrite(LimitedProtocol):
    """uvicorn's protocol over a transport that writes the pieces of a response together."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(Together(transport))

    def on_response_complete(self) -> None:
        """See `HttpToolsProtocol`: the response is sent before it is counted and logged."""
        if isinstance(self.transport, Together):
            self.transport.flush()
        super().on_response_complete()


class Together(asyncio.Transport):
    """A transport that buffers until a flush, the end of the event loop's turn, or enough bytes for a write.

    It never buffers more, so the underlying transport still detects slow readers.
    """

    def __init__(self, beneath: asyncio.Transport) -> None:
        super().__init__()
        self._beneath = beneath
        self._held: list[bytes] = []
        self._bytes = 0

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """See `asyncio.WriteTransport`."""
        if not self._held:
            asyncio.get_running_loop().call_soon(self.flush)
        self._held.append(bytes(data))
        self._bytes += len(data)
        if self._bytes >= _TOGETHER_MAX:
            self.flush()

    def close(self) -> None:
        """See `asyncio.BaseTransport`: buffered bytes are written first."""
        self.flush()
        self._beneath.close()

    def abort(self) -> None:
        """See `asyncio.WriteTransport`: buffered bytes are lost."""
        self._held.clear()
        self._beneath.abort()

    def is_closing(self) -> bool:
        """See `asyncio.BaseTransport`."""
        return self._beneath.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """See `asyncio.BaseTransport`."""
        return self._beneath.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """See `asyncio.BaseTransport`."""
        self._beneath.set_protocol(protocol)

    def pause_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._beneath.pause_reading()

    def resume_reading(self) -> None:
        """See `asyncio.ReadTransport`."""
        self._beneath.resume_reading()

    def flush(self) -> None:
        """Write the buffered bytes."""
        if self._held:
            data, self._held, self._bytes = b"".join(self._held), [], 0
            self._beneath.write(data)
