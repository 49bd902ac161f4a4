"""The pages that begin and end the session of a browser."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import RedirectResponse, Response

from hybrid.errors import AccessError, UsageError, error_document
from hybrid.home.accounts import Right
from hybrid.serve.authentication import Authentication
from hybrid.serve.authorization import needs
from hybrid.serve.console.page import Json, html_response
from hybrid.serve.console.rendering import render
from hybrid.serve.sessions import SESSION_S, SIGN_IN, cookie_name, local_place

router = APIRouter(include_in_schema=False)


@router.get(SIGN_IN)
async def sign_in_page(request: Request) -> Response:
    """Returns the page that asks for an account's secret."""
    return await run_in_threadpool(_page, request, local_place(request.query_params.get("next")))


@router.post(SIGN_IN)
@needs(Right.READ)
async def sign_in(request: Request) -> Response:
    """Begins a session; the page again, with the error, where no account has the secret."""
    async with request.form() as form:
        secret, place = form.get("secret"), local_place(form.get("next"))
    try:
        if not isinstance(secret, str) or not secret.strip():
            raise UsageError("Give the secret of an account.")
        _, value = await run_in_threadpool(_authentication(request).sign_in, secret.strip())
    except (AccessError, UsageError) as error:
        return await run_in_threadpool(_page, request, place, error_document(error), error.http_status)
    answer = RedirectResponse(place, status_code=303)
    _set_cookie(request, answer, value, SESSION_S)
    return answer


@router.post("/ui/sign-out")
@needs(Right.READ)
async def sign_out(request: Request) -> Response:
    """Ends the session of this browser."""
    answer = RedirectResponse(SIGN_IN, status_code=303)
    _set_cookie(request, answer, "", 0)
    return answer


def _page(request: Request, place: str, error: Json = None, status: int = 200) -> Response:
    needed = _authentication(request).needs_account
    values = {"title": "Sign in", "path": SIGN_IN, "next": place, "error": error, "needed": needed}
    return html_response(render("sign_in.html", values), status=status)


def _set_cookie(request: Request, answer: Response, value: str, age_s: int) -> None:
    answer.set_cookie(
        cookie_name(request.headers.get("host", "")),
        value,
        max_age=age_s,
        path="/",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )


def _authentication(request: Request) -> Authentication:
    found = request.app.state.authentication
    assert isinstance(found, Authentication)
    return found
