"""The mechanism of the console's pages: a function returns a view model, which is sent as HTML or as JSON.

    @page(router, "/ui/tables/{table}/segments", template="segments.html", title="Segments")
    def segments_page(ask: PageRequest, table: str) -> Json:
        return {"table": table, "segments": ask.call("segments", table=table)}

    @change(router, "/ui/tables/{table}/pause", verb="pause", then="/ui/tables/{table}/ingestion")
    def pause_change(ask: PageRequest, table: str) -> Json:
        return {"table": table, "comment": ask.text("comment")}

A page reads by verbs of the API, a change calls one: both contain no logic of their own.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

from anyio.to_thread import run_sync
from fastapi import APIRouter, Request
from starlette.datastructures import FormData, UploadFile
from starlette.responses import JSONResponse, RedirectResponse, Response

from hybrid.errors import RightError, UsageError
from hybrid.home.accounts import ASKING_RIGHT
from hybrid.home.input_access import UPLOAD
from hybrid.rpc.client import STATEMENT_VERBS
from hybrid.rpc.verbs import VERBS
from hybrid.runtime.json_values import json_value
from hybrid.serve.authentication import who_asks
from hybrid.serve.authorization import needs
from hybrid.serve.console.rendering import MAIN_BLOCK, path_part, render, templates_hash
from hybrid.serve.context import ServerContext, context_of
from hybrid.serve.error_responses import answer_of
from hybrid.serve.uploads import remove_stored, store_files
from hybrid.serve.verbs import answer_statement, run_checked

Json = Any
_POLICY = "default-src 'self'; object-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Vary": "Accept, HX-Request, HX-Target, Cookie, Authorization",
}
_NO_STORE = "no-store"
_REVALIDATE = "private, no-cache"


@dataclass(frozen=True)
class PageRequest:
    """A request to a page: its parameters, the fields of its form, and the verbs of the API."""

    request: Request
    context: ServerContext
    form: FormData = field(default_factory=FormData)

    def call(self, verb: str, **arguments: Any) -> Json:
        """The result of a light verb, limited as over HTTP. RightError where the account may not call it."""
        right = ASKING_RIGHT.get()
        if right is not None and right < VERBS[verb].right:
            raise RightError(f"{verb} takes the right {VERBS[verb].right.word}.")
        if verb in STATEMENT_VERBS:
            return json.loads(bytes(answer_statement(self.request, verb, arguments).body))
        if VERBS[verb].is_heavy(self.context.home, arguments):
            raise UsageError(f"{verb} with these arguments is heavy work, which a page cannot wait for.")
        return json_value(VERBS[verb].call(self.context.home, **arguments))

    @property
    def url(self) -> str:
        """The address by which the client reached the server."""
        return str(self.request.base_url)

    def parameter(self, name: str) -> str:
        """A parameter of the URL; empty where it is missing."""
        return self.request.query_params.get(name, "")

    def text(self, name: str) -> str | None:
        """A text field of the form; None when it is empty or missing."""
        value = self.form.get(name)
        return value.strip() or None if isinstance(value, str) else None

    def texts(self, *names: str) -> dict[str, str]:
        """Those text fields of the form that are filled in, by name."""
        found = {name: self.text(name) for name in names}
        return {name: text for name, text in found.items() if text is not None}

    def pasted(self, name: str) -> str:
        """A text field of the form as it was written, so that lines are counted as its author sees them."""
        value = self.form.get(name)
        return value.replace("\r\n", "\n") if isinstance(value, str) else ""

    def warn(self, warnings: Sequence[str]) -> None:
        """Show warnings with what a change did, which its verb does not give."""
        self.request.state.warnings = [*_warnings_of(self.request), *warnings]

    def stored_files(self, name: str) -> str | None:
        """The path of the form's files, stored for the run of this change, which may read no other file. None: none."""
        found = [value for value in self.form.getlist(name) if isinstance(value, UploadFile) and value.filename]
        if not found:
            return None
        stored = store_files(self.context.home.home, [(value.filename or "", value.file) for value in found])
        self.request.state.stored = stored
        return str(stored)

    def is_checked(self, name: str) -> bool:
        """Whether a checkbox of the form is checked."""
        return name in self.form

    def require_confirmed(self, name: str) -> None:
        """UsageError unless the form's confirmation repeats a name. Browsers without scripts send it unchecked."""
        if self.text("confirm") != name:
            raise UsageError(f"The confirmation does not read '{name}'. Nothing was changed.", hint="Type it exactly")


class Threads(StrEnum):
    """The threads of `ServerContext` that a view may take: it waits for none, for all tables, or for Kafka itself."""

    PAGES = "page_threads"
    OVERVIEW = "overview_threads"
    KAFKA = "kafka_threads"


@dataclass(frozen=True)
class Page:
    """What a page is made of.

    `threads`: whose threads its view takes.
    """

    view: Callable[..., Json]
    template: str
    title: str
    poll_ms: int = 0
    threads: Threads = Threads.PAGES

    async def answer(self, request: Request, as_json: bool) -> Response:
        """The response to a GET. It is made in one of the page's threads, so that statements do not wait for it."""
        context = context_of(request)
        make = partial(self._response, request, context, as_json)
        try:
            return await run_sync(make, limiter=getattr(context, self.threads))
        except Exception as error:
            if as_json:
                raise
            return error_page(request, error, self.title)

    def _response(self, request: Request, context: ServerContext, as_json: bool) -> Response:
        began_s = time.thread_time()
        model = self.view(PageRequest(request, context), **request.path_params)
        encoded = _encoded(model)
        is_whole = not as_json and target_block(request) is None  # parts of a page have no navigation
        names = context.home.context.listed_names() if is_whole else []
        tag = self._tag(request, encoded, names)
        if request.headers.get("if-none-match") == tag:
            response = Response(status_code=304)
        elif as_json:
            response = Response(encoded, media_type="application/json")
        else:
            html = self._html(request, model, names).encode("utf-8", "backslashreplace")
            response = Response(html, media_type="text/html; charset=utf-8")
        response.headers.update({**page_headers(), "Cache-Control": _REVALIDATE, "ETag": tag})
        # Processor time, by which the page decides how soon it asks again.
        response.headers["Server-Timing"] = f"page;dur={1000 * (time.thread_time() - began_s):.1f}"
        return response

    def _tag(self, request: Request, encoded: bytes, names: Sequence[str]) -> str:
        """A tag of the response: the same model gives the same, without rendering it."""
        name, right, block = who_asks(), ASKING_RIGHT.get(), target_block(request)
        more = json.dumps([templates_hash(), name, right, block, request.url.query, *names])
        return f'"{hashlib.sha256(more.encode() + encoded).hexdigest()[:32]}"'

    def _html(self, request: Request, model: Json, names: Sequence[str]) -> str:
        values = {"model": model, "title": self.title, "path": request.url.path, "query": request.url.query}
        more = {"poll_ms": self.poll_ms, "tables": names}
        return render(self.template, {**values, **more}, target_block(request))


def page(
    router: APIRouter,
    path: str,
    *,
    template: str,
    title: str,
    poll_ms: int = 0,
    threads: Threads = Threads.PAGES,
) -> Callable[[Callable[..., Json]], Callable[..., Json]]:
    """Register a view function for a path and for its twin with `.json`. `poll_ms`: the page updates itself."""

    def declare(view: Callable[..., Json]) -> Callable[..., Json]:
        made = Page(view, template, title, poll_ms, threads)

        async def as_json(request: Request) -> Response:
            return await made.answer(request, as_json=True)

        async def as_accepted(request: Request) -> Response:
            return await made.answer(request, as_json=accepts_json(request))

        # The twin first: `{table}` would match `orders.json`.
        router.add_api_route(f"{path}.json", as_json, methods=["GET"], response_model=None)
        router.add_api_route(path, as_accepted, methods=["GET"], response_model=None)
        return view

    return declare


def change(
    router: APIRouter, path: str, *, verb: str, then: str, template: str = "change.html", stays: bool = False
) -> Callable[[Callable[..., Json]], Callable[..., Json]]:
    """Register a function that turns a form into a verb's arguments. The verb's right is needed.

    Afterwards a browser goes on to the page `then`, whose place may name parts of the path and of the result. htmx gets
    `template`, rendered from the verb's `result` or from the `run` that was queued, and from the texts of the `form`.
    `stays`: a browser gets `template` as a page, because the result is what was asked for.
    """
    shown = _Shown(verb, then, template, stays)

    def declare(arguments_of: Callable[..., Json]) -> Callable[..., Json]:
        async def post(request: Request) -> Response:
            return await _changed(request, arguments_of, shown)

        router.add_api_route(path, needs(VERBS[verb].right)(post), methods=["POST"], response_model=None)
        return arguments_of

    return declare


@dataclass(frozen=True)
class _Shown:
    """How the outcome of a change is shown: see `change`."""

    verb: str
    then: str
    template: str
    stays: bool


async def _changed(request: Request, arguments_of: Callable[..., Json], shown: _Shown) -> Response:
    context = context_of(request)
    try:
        async with request.form() as form:
            asked = PageRequest(request, context, form)
            arguments = await run_sync(partial(arguments_of, asked, **request.path_params))
            texts = {name: asked.pasted(name) for name in form}
        source = UPLOAD if stored_of(request) is not None else "console"
        outcome = await run_sync(partial(run_checked, context, shown.verb, arguments, source))
    except Exception as error:
        await _discard_stored(request)
        if accepts_json(request):
            raise
        return error_page(request, error, "Not done")
    return _outcome_response(request, outcome, shown, texts)


def _warnings_of(request: Request) -> list[str]:
    return list(getattr(request.state, "warnings", ()))


def stored_of(request: Request) -> Path | None:
    """The files of a form that were stored for a run."""
    found = getattr(request.state, "stored", None)
    return found if isinstance(found, Path) else None


async def _discard_stored(request: Request) -> None:
    """Remove stored files that no run will read."""
    stored = stored_of(request)
    if stored is not None:
        await run_sync(remove_stored, stored)


def _outcome_response(
    request: Request, outcome: Mapping[str, Any], shown: _Shown, texts: Mapping[str, str]
) -> Response:
    result, run = outcome["result"], outcome["run"]
    if accepts_json(request):
        return JSONResponse(result if run is None else {"run": run}, _status(outcome))
    parts = {**(result if isinstance(result, Mapping) else {}), **request.path_params}
    place = shown.then.format(**{name: path_part(part) for name, part in parts.items() if isinstance(part, str)})
    in_place = "hx-request" in request.headers
    if not in_place and (run is not None or not shown.stays):
        return RedirectResponse(place if run is None else f"/ui/runs/{run}", status_code=303)
    values = {"verb": shown.verb, "then": place, "form": texts, "warnings": _warnings_of(request), **outcome}
    if in_place:
        return html_response(render(shown.template, values), headers={"HX-Trigger": "changed"})
    page_values = {"title": "Check", "path": request.url.path, "part": shown.template}
    return html_response(render("outcome.html", {**values, **page_values}))


def _status(outcome: Mapping[str, Any]) -> int:
    return 200 if outcome["run"] is None else 202


def error_page(request: Request, error: Exception, title: str) -> Response:
    """An error with its hint: in place of what htmx updates, else as a page. Unexpected ones are logged."""
    answer = answer_of(request, error)
    document = json.loads(bytes(answer.body))
    values = {"error": document, "title": title, "path": request.url.path}
    in_place = "hx-request" in request.headers
    return html_response(render("_error.html" if in_place else "error.html", values), status=answer.status_code)


def html_response(
    body: str, *, status: int = 200, nonce: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """HTML that no browser keeps, with the content security policy."""
    content = body.encode("utf-8", "backslashreplace")
    made = {**page_headers(nonce), "Cache-Control": _NO_STORE, **(headers or {})}
    return Response(content, status, made, media_type="text/html; charset=utf-8")


def page_headers(nonce: str | None = None) -> dict[str, str]:
    """The headers of every page. `nonce` permits style elements that carry it."""
    styles = f"; style-src 'self' 'nonce-{nonce}'" if nonce is not None else ""
    return {**_HEADERS, "Content-Security-Policy": _POLICY + styles}


def accepts_json(request: Request) -> bool:
    """Whether a client asks for JSON and not for HTML."""
    accept = request.headers.get("accept", "")
    return "application/json" in accept and "text/html" not in accept


def target_block(request: Request) -> str | None:
    """The block of a template that htmx asks for: named as its target's id, else the main one. None: the whole page."""
    if "hx-request" not in request.headers:
        return None
    return request.headers.get("hx-target", "").rpartition("#")[2].replace("-", "_") or MAIN_BLOCK


def _encoded(model: Json) -> bytes:
    try:
        text = json.dumps(model, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise UsageError("The page holds a number that JSON cannot write.") from error
    return text.encode("utf-8", "backslashreplace")
