"""A proxy before a server of stores that treats requests as networks, gateways and weaker stores do."""

from __future__ import annotations

import http.client
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from tests import azure_server, s3_server

if TYPE_CHECKING:  # which imports this module
    from tests.store_servers import StoreServer


@dataclass(frozen=True)
class Request:
    """A request, as the proxy passes it on."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes


# The headers by which a write is refused if there is an object, by protocol; and those that name one.
CREATING = {"if-none-match": "*", "x-goog-if-generation-match": "0"}
CONDITIONS = {"if-match", *CREATING}

Send = Callable[[Request], Answer]
# Takes a request and the way to the server; None: the connection is closed without an answer.
Treatment = Callable[[Request, Send], Answer | None]


def pass_on(request: Request, send: Send) -> Answer | None:
    return send(request)


def lose_request(request: Request, send: Send) -> Answer | None:
    """The server never sees it."""
    return None


def lose_answer(request: Request, send: Send) -> Answer | None:
    """The server carries it out, and nobody hears of it."""
    send(request)
    return None


def repeat(request: Request, send: Send) -> Answer | None:
    """As a gateway does that has lost the first answer."""
    send(request)
    return send(request)


def delay(seconds: float, treatment: Treatment = pass_on) -> Treatment:
    def delayed(request: Request, send: Send) -> Answer | None:
        time.sleep(seconds)
        return treatment(request, send)

    return delayed


def refuse(status: int, code: str = "", secret: str = "") -> Treatment:
    """An answer of the proxy's own: an error by its name, as S3, Azure and Google say it."""
    text = f"<Error><Code>{code}</Code><Message>{secret}</Message></Error>" if code else secret
    return lambda request, send: Answer(status, {"Content-Type": "application/xml"}, text.encode())


def drop_conditions(*names: str) -> Treatment:
    """As a store does that knows none: the headers are left out."""

    def dropped(request: Request, send: Send) -> Answer | None:
        present = {name.lower() for name in request.headers} & set(names)
        return send(_without(request, present) if present else request)

    return dropped


def check_then_write(pause_s: float) -> Treatment:
    """As a store does whose check and write are not one step: two writers may both find that there is no object."""

    def checked(request: Request, send: Send) -> Answer | None:
        conditions = {name for name, value in CREATING.items() if request.headers.get(name) == value}
        if not conditions:
            return send(request)
        present = send(_without(replace(request, method="GET", body=b""), {*conditions, "content-length"}))
        if present.status == 200:
            return refuse(412, "PreconditionFailed")(request, send)
        time.sleep(pause_s)
        return send(_without(request, conditions))

    return checked


def _without(request: Request, names: set[str]) -> Request:
    """The request without some headers, signed again where the signature is of the headers, too."""
    headers = {name: value for name, value in request.headers.items() if name not in names}
    if "x-amz-date" in headers:
        path, _, query = request.target.partition("?")
        headers = s3_server.signed(request.method, headers.get("host", ""), path, query, request.body)
    elif headers.get("authorization", "").startswith("SharedKey"):
        headers = azure_server.signed(request.method, request.target, headers, request.body)
    return replace(request, headers=headers)


def shift_clock(seconds: float) -> Treatment:
    """As if the machine's clock were ahead of the store's: in the time of answers, and from 15 minutes on of requests.

    Those are signed, so that the store refuses them in any case.
    """

    def shifted(request: Request, send: Send) -> Answer | None:
        headers = dict(request.headers)
        if "x-amz-date" in headers and abs(seconds) > 900:
            headers["x-amz-date"] = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() + seconds))
        answer = send(replace(request, headers=headers))
        return replace(answer, headers={**answer.headers, "Date": formatdate(time.time() - seconds, usegmt=True)})

    return shifted


@dataclass
class StoreProxy:
    """`always` treats all requests; each of `next_puts` the next PUT that has a condition, before it.

    What it has `seen` is kept if it is remembering.
    """

    server: StoreServer
    address: str = ""
    always: Treatment = pass_on
    next_puts: deque[Treatment] = field(default_factory=deque)
    seen: list[Request] = field(default_factory=list)
    is_remembering: bool = True
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request) -> Answer | None:
        with self._lock:
            if self.is_remembering:
                self.seen.append(request)
            is_conditional = CONDITIONS & request.headers.keys()
            treatment = self.next_puts.popleft() if is_conditional and self.next_puts else self.always
        return treatment(request, self._send)

    @property
    def environment(self) -> dict[str, str]:
        return self.server.environment_at(self.address)

    def _send(self, request: Request) -> Answer:
        connection = http.client.HTTPConnection(self.server.address, timeout=20)
        try:
            connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
            for name, value in request.headers.items():
                connection.putheader(name, value)
            if "content-length" not in request.headers and request.body:
                connection.putheader("content-length", str(len(request.body)))
            connection.endheaders(request.body or None)
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())
        finally:
            connection.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # An answer in two packets would wait 40 ms for the client's acknowledgement of the first one.
    disable_nagle_algorithm = True
    wbufsize = -1
    proxy: StoreProxy

    def _handle(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.proxy.answer(Request(self.command, self.path, headers, body))
        if answer is None:
            self.close_connection = True
            return
        self.send_response_only(answer.status)
        for name, value in answer.headers.items():
            if name.lower() not in {"content-length", "connection", "transfer-encoding"}:
                self.send_header(name, value)
        is_head = self.command == "HEAD"
        self.send_header(
            "Content-Length", answer.headers.get("Content-Length", "0") if is_head else str(len(answer.body))
        )
        self.end_headers()
        if not is_head:
            self.wfile.write(answer.body)

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _handle

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has given up is no error."""


@contextmanager
def store_proxy(server: StoreServer) -> Iterator[StoreProxy]:
    proxy = StoreProxy(server)
    handler = type("Handler", (_Handler,), {"proxy": proxy})
    with _Server(("127.0.0.1", 0), handler) as listener:
        proxy.address = f"127.0.0.1:{listener.server_port}"
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield proxy
        finally:
            listener.shutdown()
            thread.join()
