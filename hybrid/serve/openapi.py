"""OpenAPI: `/openapi.json` with one schema for every error, and `/docs`, a plain list of routes.

The page is rendered here and loads nothing; FastAPI's own pages fetch their scripts from another host.
"""

from __future__ import annotations

from html import escape
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, ConfigDict
from starlette.responses import HTMLResponse

router = APIRouter()
Json = dict[str, Any]


class Error(BaseModel):
    """An error: `error` describes the problem and its solution, `hint` is the next command or path."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "code": 404,
                    "error": "Table 'evnts' does not exist. Did you mean 'events'?",
                    "kind": "not-found",
                    "hint": None,
                }
            ]
        }
    )

    code: int
    error: str
    kind: str | None = None
    hint: str | None = None


class StatusBody(BaseModel):
    """The outcome, in Pinot's words."""

    status: str


ERRORS: dict[int | str, Json] = {
    400: {"model": Error, "description": "What was asked cannot be: a wrong body, value or name"},
    401: {"model": Error, "description": "No account is known by what was sent"},
    403: {"model": Error, "description": "The account's right is not enough, or a page of another site asks"},
    404: {"model": Error, "description": "Something that was named does not exist"},
    409: {"model": Error, "description": "Another operation runs, or ran, on the same thing; nothing was changed"},
    413: {"model": Error, "description": "The body is longer than the bound of the path"},
}
_SCHEMES = ("bearer", "basic")
NOT_BUILT: dict[int | str, Json] = {501: {"model": Error, "description": "Not built yet"}}


def shown(example: Any) -> dict[int | str, Json]:
    """Return `responses` for a route, with `example` as its response."""
    return {200: {"description": "Done", "content": {"application/json": {"example": example}}}}


def json_body(example: Json, *, form: bool = False) -> Json:
    """Return `openapi_extra` for a route with a JSON body like `example`; `form` also allows a form with one file."""
    content: Json = {"application/json": {"schema": {"type": "object"}, "example": example}}
    if form:
        content["multipart/form-data"] = file_form()
    return {"requestBody": {"required": True, "content": content}}


def file_form() -> Json:
    """Return the media type of a form with one file."""
    properties = {"file": {"type": "string", "format": "binary"}}
    return {"schema": {"type": "object", "properties": properties, "required": ["file"]}}


def describe(app: FastAPI) -> None:
    """Replace the application's OpenAPI document: without FastAPI's 422, as all errors have one format."""

    def document() -> Json:
        if not app.openapi_schema:
            made = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
            for operations in made["paths"].values():
                for operation in operations.values():
                    operation["responses"].pop("422", None)
                    _errors_as_json(operation["responses"])
            for name in ("HTTPValidationError", "ValidationError"):
                made["components"]["schemas"].pop(name, None)
            made["components"]["securitySchemes"] = {name: {"type": "http", "scheme": name} for name in _SCHEMES}
            made["security"] = [{}, *({name: []} for name in _SCHEMES)]
            app.openapi_schema = made
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _errors_as_json(responses: Json) -> None:
    """Set the media type of errors to JSON; FastAPI uses that of the successful response."""
    for code, response in responses.items():
        if code.isdigit() and int(code) >= 400 and response.get("content"):
            (content,) = response["content"].values()
            response["content"] = {"application/json": content}


@router.get("/docs", response_class=HTMLResponse, include_in_schema=False)
def docs(request: Request) -> str:
    """Returns every route with its summary."""
    sections: dict[str, list[str]] = {}
    for path, operations in request.app.openapi()["paths"].items():
        for method, operation in operations.items():
            tag = next(iter(operation.get("tags", ())), "other")
            sections.setdefault(tag, []).append(_row(path, method, operation))
    tables = "".join(f"<h2>{escape(tag)}</h2><table>{''.join(rows)}</table>" for tag, rows in sorted(sections.items()))
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>hybrid: paths</title>"
        "<style>body{font:16px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}"
        "td{padding:.25rem 1rem .25rem 0;vertical-align:top}code{white-space:nowrap}</style>"
        '<h1>Paths</h1><p>The whole document: <a href="/openapi.json">/openapi.json</a> (OpenAPI).</p>'
        f"{tables}</html>"
    )


def _row(path: str, method: str, operation: Json) -> str:
    query = "&".join(
        f"{parameter['name']}=" for parameter in operation.get("parameters", ()) if parameter["in"] == "query"
    )
    text = f"{method.upper()} {path}{'?' + query if query else ''}"
    return f"<tr><td><code>{escape(text)}</code><td>{escape(operation.get('summary', ''))}"
