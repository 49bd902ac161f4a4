"""Error answers: the right HTTP status and `{"code": 404, "error": "Table 'evnts' does not exist."}`, in one place."""

from __future__ import annotations

import logging

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse

from hybrid.errors import HybridError, error_document

_LOG = logging.getLogger(__name__)
_PATH_MAX = 200


def error_answer(status: int, message: str, **more: object) -> JSONResponse:
    """The answer for an error; `more` are further keys."""
    return JSONResponse({"code": status, "error": message, **more}, status_code=status)


def hybrid_answer(error: HybridError) -> JSONResponse:
    """The answer for an error of our own."""
    status = error.http_status if error.http_status >= 400 else 400
    document = error_document(error)
    answer = error_answer(status, str(document.pop("error")), **document)
    if status == 401:
        answer.headers["WWW-Authenticate"] = 'Basic realm="hybrid", Bearer'
    return answer


def not_built(sentence: str) -> JSONResponse:
    """The answer of a path that is known and does nothing yet."""
    return error_answer(501, sentence, kind="not-built", hint=None)


def add_error_answers(app: FastAPI) -> None:
    """Makes every error that a path raises such an answer."""

    async def answered(request: Request, error: Exception) -> JSONResponse:
        return answer_of(request, error)

    for kind in (HybridError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answered)


def answer_of(request: Request, error: Exception) -> JSONResponse:
    """The answer for an error that a path raised. What is not expected is logged."""
    if isinstance(error, HybridError):
        return hybrid_answer(error)
    if isinstance(error, RequestValidationError):
        found = error.errors()[0]
        place = ".".join(str(part) for part in found["loc"])
        return error_answer(400, f"{place}: {found['msg']}.", kind="usage", hint=None)
    if isinstance(error, HTTPException):
        message = {
            404: f"There is no path {request.url.path[:_PATH_MAX]}. The paths are listed at /docs.",
            405: f"{request.method} is not a method of {request.url.path[:_PATH_MAX]}.",
        }.get(error.status_code, str(error.detail))
        answer = error_answer(error.status_code, message, kind="usage", hint=None)
        answer.headers.update(error.headers or {})
        return answer
    _LOG.error("Unexpected error at %s %s", request.method, request.url.path, exc_info=error)
    return error_answer(500, f"Unexpected {type(error).__name__}.", kind="error", hint="hybrid logs")
