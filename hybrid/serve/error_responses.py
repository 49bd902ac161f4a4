"""Error responses: HTTP status and `{"code": 404, "error": "Table 'evnts' does not exist."}`."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from hybrid.errors import EXECUTION, VALIDATION, HybridError, error_document

_LOG = logging.getLogger(__name__)
_PATH_MAX = 200
_SEGMENTS = "/segments/"
QUERY_PATHS = frozenset({"/query/sql", "/query", "/sql"})
# Pinot's QueryErrorCode, by HTTP status: ACCESS_DENIED, BROKER_TIMEOUT, TOO_MANY_REQUESTS, INTERNAL, QUERY_VALIDATION.
_PINOT_CODES = {401: 180, 403: 180, 408: 250, 429: 429, 503: 429, 500: 450}


class _ErrorAnswer(JSONResponse):
    """JSON of an error. Half a surrogate pair, repeated from the input, is written as its escape."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "backslashreplace")


def error_answer(status: int, message: str, path: str = "", **more: object) -> JSONResponse:
    """Return the response for an error at `path`; `more` are further keys."""
    document = {"code": status, "error": message, **more}
    return _ErrorAnswer(for_pinot(status, document) if path in QUERY_PATHS else document, status_code=status)


def for_pinot(status: int, document: Mapping[str, object]) -> dict[str, object]:
    """Return an error in the format of Pinot's broker; without its keys clients report a timeout of its servers."""
    code = document.get("pinot_code")
    if status in _PINOT_CODES and code in (None, EXECUTION):  # an error without a code of its own
        code = _PINOT_CODES[status]
    text = f"{document['error']} {document['hint']}" if document.get("hint") else document["error"]
    pinot_error = {"errorCode": code or VALIDATION, "message": text}
    return {**document, "exceptions": [pinot_error], "numServersQueried": 1, "numServersResponded": 1}


def hybrid_answer(error: HybridError, path: str = "") -> JSONResponse:
    """Return the response for a HybridError."""
    status = error.http_status if error.http_status >= 400 else 400
    document = error_document(error)
    answer = error_answer(status, str(document.pop("error")), path, **document)
    if status == 401:
        answer.headers["WWW-Authenticate"] = 'Basic realm="hybrid", Bearer'
    return answer


def not_built(sentence: str) -> JSONResponse:
    """Return the response of a route that is not implemented yet."""
    return error_answer(501, sentence, kind="not-built", hint=None)


def add_error_answers(app: FastAPI) -> None:
    """Register handlers that turn every error of a route into such a response."""

    async def answered(request: Request, error: Exception) -> JSONResponse:
        return answer_of(request, error)

    for kind in (HybridError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answered)


def answer_of(request: Request, error: Exception) -> JSONResponse:
    """Return the response for an error that a route raised. Unexpected errors are logged."""
    if isinstance(error, HybridError):
        return hybrid_answer(error, request.url.path)
    if isinstance(error, RequestValidationError):
        details = error.errors()[0]
        place = ".".join(str(part) for part in details["loc"])
        return error_answer(400, f"{place}: {details['msg']}.", request.url.path, kind="usage", hint=None)
    if isinstance(error, HTTPException):
        return _http_answer(request, error)
    if isinstance(error, ClientDisconnect):  # nobody reads this response
        return error_answer(400, "The connection ended before the body did.", kind="usage", hint=None)
    _LOG.error("Unexpected error at %s %s", request.method, request.url.path[:_PATH_MAX], exc_info=error)
    text = f"Unexpected {type(error).__name__}."
    return error_answer(500, text, request.url.path, kind="error", hint="hybrid logs")


def _http_answer(request: Request, error: HTTPException) -> JSONResponse:
    status, path = error.status_code, request.url.path[:_PATH_MAX]
    message = {
        404: f"There is no path {path}. The paths are listed at /docs.",
        405: f"{request.method} is not a method of {path}.",
    }.get(status, str(error.detail))
    if status == 405 and path.startswith(_SEGMENTS):
        # `/segments/{table}/{segment}` has DELETE, so any unknown Pinot route below it would look like a wrong method.
        status, message = 404, f"There is no path {request.method} {path}. The paths are listed at /docs."
    answer = error_answer(status, message, request.url.path, kind="usage", hint=None)
    answer.headers.update(error.headers or {})
    return answer
