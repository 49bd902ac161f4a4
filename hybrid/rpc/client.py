"""The client of a server's verbs: the same names, arguments, results and errors as in this process.

A heavy verb returns a queued run. The client polls it until it ends, and shows its progress.
"""

from __future__ import annotations

import base64
import json
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from socket import SHUT_RDWR, socket
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, quote, unquote, urlsplit

from hybrid.errors import HybridError, MachineError, QueryError, UsageError, known_kinds, with_others
from hybrid.jvm.process import Process, read_record
from hybrid.progress import Progress
from hybrid.runtime.backoff import Backoff
from hybrid.schema.secrets import without_login

if TYPE_CHECKING:
    from http.client import HTTPResponse

Began = Callable[[Callable[[], None]], None]  # receives a function that ends a statement

SERVER_FILE = "server.json"
# These read rows of tables, and end with the request: their server stops them when nobody waits for the answer.
STATEMENT_VERBS = frozenset({"query", "explain", "table_view", "rejected"})
_VERBS = "/verbs/"
_CANCEL_S = 2.0
_CONNECT_S = 30.0  # a server that restarts its query process accepts at once and answers some seconds later
_POLL_S = (0.05, 0.5)
_LOST_S = 20.0  # for which a run is asked for again while the server does not answer: it may be starting again
_STEP = re.compile(r"(.{1,200}): ([0-9]{1,18}) of ([0-9]{1,18})")  # as the server's queue records it


@dataclass(frozen=True)
class ServerRecord:
    """The server that runs on a home: its address, and the process that watches its others."""

    url: str
    process: Process


def server_record(home: Path) -> ServerRecord | None:
    """The server that runs on a home, from the file it leaves there; None when none runs.

    A copied home does not share the server of the original: see `read_record`.
    """
    record = read_record(home / SERVER_FILE)
    if record is None or "url" not in record:
        return None
    return ServerRecord(str(record["url"]), Process(record["pid"], record["started"]))


def server_of(home: Path) -> str | None:
    """The address of the server that runs on a home; None when none runs."""
    record = server_record(home)
    return None if record is None else record.url


def secret_of(home: Path, url: str) -> str | None:
    """The secret in the home's server file, for whoever may read it; None when `url` is another server's."""
    record = read_record(home / SERVER_FILE) or {}
    if "secret" not in record:
        return None
    addresses = {plain_address(str(record.get(name))) for name in ("url", "broker_url")}
    return str(record["secret"]) if plain_address(url) in addresses else None


def plain_address(url: str) -> str:
    """A server's address in the form in which addresses are compared."""
    return url.removeprefix("http://").rstrip("/").replace("localhost:", "127.0.0.1:")


@dataclass(frozen=True)
class ServerAddress:
    """A server's address: its parts, its text without a login, and the login `user:password`; None without one."""

    parts: SplitResult
    url: str
    login: str | None

    @classmethod
    def parse(cls, url: str) -> ServerAddress:
        """The address in a text; UsageError, without the login, when it is none."""
        try:
            parts = urlsplit(url if "://" in url else f"http://{url}")
            is_address = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
        except ValueError:  # a port that is no number, a bracket that is not closed
            is_address = False
        if not is_address:
            url = without_login(url) if "://" in url else url.rpartition("@")[2]
            raise UsageError(f"'{url}' is not a server's address.", hint="Write it like http://127.0.0.1:9000")
        pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        plain = url.replace(parts.netloc, parts.netloc.rpartition("@")[2], 1)
        return cls(parts, plain, pair if pair != ":" else None)


class Client:
    """The client of the server at `url`. It raises the verb's error; MachineError when the server does not answer.

    `secret` is an account's secret, if the server requires one. A login in the address counts before it.
    """

    def __init__(self, url: str, progress: Progress, secret: str | None = None) -> None:
        address = ServerAddress.parse(url)
        self._parts, self._url, self._progress = address.parts, address.url, progress
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "hybrid"}
        if address.login is not None:
            self._headers["Authorization"] = f"Basic {base64.b64encode(address.login.encode()).decode()}"
        elif secret is not None:
            self._headers["Authorization"] = f"Bearer {secret}"

    @property
    def url(self) -> str:
        """The server's address, without a password."""
        return self._url

    def call(self, verb: str, arguments: Mapping[str, Any], began: Began | None = None) -> Any:
        """The result of the verb. An interrupt stops a statement; of other verbs it ends only the wait.

        What the server continues is reported then. `began` receives a function that stops a statement from another
        thread; the call then ends with MachineError.
        """
        if verb in STATEMENT_VERBS:
            return self._ask_statement(verb, dict(arguments), began)
        notice = (
            f"The server at {self._url} was not stopped: what was asked may still be done there (hybrid task list)."
        )
        try:
            status, answer = self._request("POST", f"{_VERBS}{verb}", dict(arguments))
            if status != 202:
                return answer
            run = answer["run"]
            notice = f"The server at {self._url} continues run {run} and commits it. Look at it: hybrid task show {run}"
            return self._follow(run)
        except KeyboardInterrupt:
            self._progress.say(notice)
            raise

    def run(self, run_id: str) -> dict[str, Any]:
        """A run with its report or error."""
        _, run = self._request("GET", f"/runs/{quote(run_id, safe='')}")
        return dict(run)

    def _ask_statement(self, verb: str, arguments: Mapping[str, Any], began: Began | None) -> Any:
        request_id = secrets.token_hex(8)
        try:
            return self._request("POST", f"{_VERBS}{verb}", arguments, {"X-Request-Id": request_id}, began=began)[1]
        except KeyboardInterrupt:
            # The closed connection stops it too, though not behind every proxy.
            with suppress(HybridError, KeyboardInterrupt):
                self._request("DELETE", f"/query/{request_id}", timeout_s=_CANCEL_S)
            raise

    def _follow(self, run_id: str) -> Any:
        last_progress, backoff = None, Backoff(*_POLL_S)
        while True:
            run = self._poll(run_id)
            if run["progress"] and run["progress"] != last_progress and run["state"] in {"QUEUED", "RUNNING"}:
                last_progress = run["progress"]
                _report(self._progress, last_progress)
            if run["state"] not in {"QUEUED", "RUNNING"}:
                if run["error"]:
                    raise error_of(run["error"])
                return run["report"]
            time.sleep(backoff.next_s())

    def _poll(self, run_id: str) -> dict[str, Any]:
        """A queued run. MachineError, which names it, when the server has not answered for some seconds."""
        until, backoff = time.monotonic() + _LOST_S, Backoff(*_POLL_S)
        while True:
            try:
                return self.run(run_id)
            except MachineError as error:
                if time.monotonic() > until:
                    raise MachineError(
                        f"{error} It may continue run {run_id} and commit it.",
                        hint=f"hybrid task show {run_id} says how it ended, when the server answers again.",
                    ) from error
            time.sleep(backoff.next_s())

    @contextmanager
    def stream(self, path: str, body: Any, accept: str) -> Iterator[HTTPResponse]:
        """The response to a POST, for reading it as it comes. Raises the server's error.

        MachineError when the server does not answer, or ends the response before its end.
        """
        with self._response("POST", path, body, {"Accept": accept}) as response:
            if response.status >= 400:
                with self._unreachable():
                    document = json.loads(response.read())
                raise _error_in(document)
            yield response

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Maps errors of reading a response that has begun."""
        import http.client

        try:
            yield
        except (OSError, http.client.HTTPException) as error:
            raise MachineError(
                f"The server at {self._url} ended its answer too early ({type(error).__name__}).",
                hint="Its log says why: hybrid logs. Run it again.",
            ) from error

    def _request(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        began: Began | None = None,
    ) -> tuple[int, Any]:
        """Status and document of a request. `timeout_s` limits the wait for each part; None: no limit."""
        sent = f"{method} {path}"
        with self._response(method, path, body, headers, timeout_s, began) as response, self._unreachable(sent):
            text = response.read()
            answer = json.loads(text) if text else None
        if response.status >= 400:
            raise _error_in(answer)
        return response.status, answer

    @contextmanager
    def _response(
        self,
        method: str,
        path: str,
        body: Any,
        headers: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        began: Began | None = None,
    ) -> Iterator[HTTPResponse]:
        """The response to a request, for reading it in the block. MachineError when the server does not answer."""
        import http.client

        kind = http.client.HTTPSConnection if self._parts.scheme == "https" else http.client.HTTPConnection
        connect_s = _CONNECT_S if timeout_s is None else timeout_s
        connection = kind(self._parts.hostname or "", self._parts.port, timeout=connect_s)
        try:
            with self._unreachable():
                payload = None if body is None else json.dumps(body)
                connection.connect()
                connection.sock.settimeout(timeout_s)
                if began is not None:
                    began(partial(_break, connection.sock))
            with self._unreachable(f"{method} {path}"):
                target = self._parts.path.rstrip("/") + path
                connection.request(method, target, payload, {**self._headers, **(headers or {})})
                response = connection.getresponse()
            yield response
        finally:
            connection.close()

    @contextmanager
    def _unreachable(self, sent: str = "") -> Iterator[None]:
        """Maps errors of the connection. `sent`: the request that the server may have begun, as `METHOD PATH`."""
        import http.client

        try:
            yield
        except (OSError, http.client.HTTPException, ValueError) as error:
            if _may_change(sent):
                raise MachineError(
                    f"The server at {self._url} got the request and did not answer ({type(error).__name__}). "
                    "A change may be done there.",
                    hint="hybrid task list shows the runs there. Look before you ask for a change again.",
                ) from error
            raise MachineError(
                f"The server at {self._url} does not answer ({type(error).__name__}).",
                hint="hybrid serve, or leave --server (HYBRID_SERVER) away to work without one.",
            ) from error


def _may_change(request: str) -> bool:
    """Whether a request, `METHOD PATH`, may have an effect that outlasts it."""
    from hybrid.home.accounts import Right
    from hybrid.rpc.verbs import VERBS  # a client without an error needs nothing of what they import

    verb = VERBS.get(request.removeprefix(f"POST {_VERBS}"))
    return verb is not None and verb.right is not Right.READ


def _report(progress: Progress, message: str) -> None:
    """Reports a run's progress, as this process's own: a stage as its steps, anything else as a milestone."""
    step = _STEP.fullmatch(message)
    if step is None:
        progress.say(message)
    else:
        progress.step(step[1], int(step[2]), int(step[3]))


def _break(connection: socket) -> None:
    """Ends a connection that another thread may read from. The server stops a statement that nobody waits for."""
    with suppress(OSError):  # it has ended
        connection.shutdown(SHUT_RDWR)


def _error_in(answer: Any) -> HybridError:
    """The error in the answer of a server, or of a proxy before it, which has other documents."""
    return error_of(answer if isinstance(answer, dict) else {"error": str(answer), "kind": "machine"})


def error_of(answer: Mapping[str, Any]) -> HybridError:
    """The error in a server's error document."""
    kind = known_kinds().get(str(answer.get("kind")), HybridError)
    message, hint = str(answer.get("error")), answer.get("hint")
    if issubclass(kind, QueryError):
        return kind(message, pinot_code=int(answer.get("pinot_code", 200)), hint=hint)
    return with_others(kind(message, hint=hint), answer)
