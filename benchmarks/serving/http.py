"""A lean client: one kept connection of http.client, one statement after the other."""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

_HEADERS = {"Content-Type": "application/json"}


Rows = list[list[Any]]


@dataclass(frozen=True)
class Endpoint:
    """Where statements are sent, and in which form: here as Pinot's broker takes them. Processes pass it on."""

    host: str
    port: int

    def dialect(self, text: str) -> str:
        """The text of a statement as this system takes it, its parameters still open."""
        return text

    def request(self, sql: str) -> tuple[str, str, bytes | None]:
        """Method, path and body of a statement's request."""
        return "POST", "/query/sql", json.dumps({"sql": sql}).encode()

    def rows(self, answer: bytes) -> Rows | None:
        """The rows of an answer; None when it says that the statement failed."""
        found = json.loads(answer)
        if found.get("exceptions") or "resultTable" not in found:
            return None
        rows: Rows = found["resultTable"]["rows"]
        return rows


class Client:
    """One connection. What it times ends when the whole answer has been read; reading its JSON is not part of it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=120)

    def ask(self, sql: str) -> tuple[float, bytes]:
        """Seconds, and the answer as it came."""
        method, path, body = self._endpoint.request(sql)
        headers = {} if body is None else _HEADERS
        started = time.perf_counter()
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse().read()
        return time.perf_counter() - started, answer

    def rows(self, sql: str) -> Rows | None:
        """The rows of a statement; None when it failed."""
        return self._endpoint.rows(self.ask(sql)[1])

    def close(self) -> None:
        self._connection.close()


def call(method: str, url: str, body: object = None) -> tuple[int, str]:
    """Status and text of a request that is not measured."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, _HEADERS if data else {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
