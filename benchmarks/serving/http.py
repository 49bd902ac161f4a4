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


@dataclass(frozen=True)
class Endpoint:
    """Where statements are posted, as Pinot's broker takes them."""

    host: str
    port: int


class Client:
    """One connection. What it times ends when the whole answer has been read; reading its JSON is not part of it."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._connection = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=120)

    def ask(self, sql: str) -> tuple[float, bytes]:
        """Seconds, and the answer as it came."""
        body = json.dumps({"sql": sql}).encode()
        started = time.perf_counter()
        self._connection.request("POST", "/query/sql", body, _HEADERS)
        answer = self._connection.getresponse().read()
        return time.perf_counter() - started, answer

    def rows(self, sql: str) -> list[list[Any]] | None:
        """The rows of a statement; None when it failed."""
        return rows_of(self.ask(sql)[1])

    def close(self) -> None:
        self._connection.close()


def rows_of(answer: bytes) -> list[list[Any]] | None:
    """The rows of an answer; None when it says that the statement failed."""
    found = json.loads(answer)
    if found.get("exceptions") or "resultTable" not in found:
        return None
    rows: list[list[Any]] = found["resultTable"]["rows"]
    return rows


def call(method: str, url: str, body: object = None) -> tuple[int, str]:
    """Status and text of a request that is not measured."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, _HEADERS if data else {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode(errors="replace")
