"""Request bodies as documents: JSON, read strictly, or a form with one file, as Pinot's clients send it."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine, Sequence
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.responses import Response

from hybrid.config.overrides import parse_document, parse_value
from hybrid.errors import HybridError, SpecError, UsageError

SOURCE = "body"
_MARK = ": this key is not implemented"


class _StrictRequest(Request):
    """A request whose JSON is read as strictly as files: no key twice, no NaN."""

    async def json(self) -> Any:
        """Return the JSON value of the body. SpecError names the place of a mistake."""
        value = parse_value(_decoded(await self.body()), SOURCE)
        check_characters(value)
        return value


class _StrictRoute(APIRoute):
    """A route whose JSON body is read strictly before its shape is checked."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the function that answers a request."""
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                return await handle(_StrictRequest(request.scope, request.receive))
            except HTTPException as error:
                if isinstance(error.__cause__, HybridError):  # FastAPI replaces what reading a body raises
                    raise error.__cause__ from None
                raise

        return answer


class StrictRouter(APIRouter):
    """The routes of one noun. Their JSON bodies are read strictly."""

    def __init__(self, *, tags: list[str]) -> None:
        super().__init__(tags=[*tags], route_class=_StrictRoute)


async def _text(request: Request) -> str:
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        return _decoded(await request.body())
    async with request.form(max_files=1, max_fields=10) as form:
        files = [value for _, value in form.multi_items() if isinstance(value, UploadFile)]
        if len(files) != 1:
            raise UsageError(f"The form holds {len(files)} files; one is expected: curl -F file=@schema.json")
        return _decoded(await files[0].read())


BodyText = Annotated[str, Depends(_text)]


def document(text: str) -> dict[str, object]:
    """Parse the JSON object in a body, as strictly as config files. SpecError names the place of the mistake."""
    body = parse_document(text, SOURCE)
    check_characters(body)
    return body


def check_characters(found: object) -> None:
    """SpecError for values that JSON can express but no store can keep: half a surrogate pair, NaN or infinity."""
    try:
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except UnicodeEncodeError as error:
        raise SpecError(f"{SOURCE}: a text holds half of a surrogate pair, which is no character.") from error
    except ValueError as error:
        raise SpecError(f"{SOURCE}: a number is too large to be kept.") from error


def unrecognized(found: object, warnings: Sequence[str]) -> dict[str, Any]:
    """Return the keys of a document that nothing reads, by JSON pointer with their values, as Pinot does."""
    marks = {warning.removeprefix(f"{SOURCE}: ").partition(_MARK)[0] for warning in warnings if _MARK in warning}
    return dict(_marked(found, marks, "", ""))


def _marked(node: object, marks: set[str], path: str, pointer: str) -> Any:
    if isinstance(node, dict):
        items = [(f"{path}.{key}" if path else key, f"{pointer}/{key}", value) for key, value in node.items()]
    elif isinstance(node, list):
        items = [(f"{path}[{at}]", f"{pointer}/{at}", value) for at, value in enumerate(node)]
    else:
        return
    for below, to, value in items:
        if below in marks:
            yield to, value
        else:
            yield from _marked(value, marks, below, to)


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SpecError(f"{SOURCE}: byte {error.start} is not UTF-8.") from error
