"""How uvicorn serves an application: quietly, and with answers that leave in one piece.

uvicorn writes the head of an answer and then its body, each by a system call. Two of them wake the client twice, and
cost a small answer a twentieth of its time.
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
    """A server of the application, which logs nothing by itself and trusts no header about who asks."""
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
    """uvicorn's protocol over a transport that writes the pieces of an answer together."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(Together(transport))

    def on_response_complete(self) -> None:
        """See `HttpToolsProtocol`: the answer leaves before it is counted and logged."""
        if isinstance(self.transport, Together):
            self.transport.flush()
        super().on_response_complete()


class Together(asyncio.Transport):
    """A transport that waits for a flush, the end of the event loop's turn, or as many bytes as are worth a write.

    More than that it never holds back, so that the transport beneath still says when a reader is slow.
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
        """See `asyncio.BaseTransport`: what is held is written before."""
        self.flush()
        self._beneath.close()

    def abort(self) -> None:
        """See `asyncio.WriteTransport`: what is held is lost."""
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
        """Writes what is held."""
        if self._held:
            held, self._held, self._bytes = b"".join(self._held), [], 0
            self._beneath.write(held)
