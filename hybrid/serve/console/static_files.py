"""Static files of the console: style sheets, scripts and icons, under an address that changes with their content.

All files share one directory in the URL, a hash of everything. So their relative imports work, a browser keeps them
for a year, and after an update it asks for the new ones.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fastapi import APIRouter, Request
from starlette.responses import Response

from hybrid.errors import NotFoundError
from hybrid.serve.sessions import STATIC

router = APIRouter(include_in_schema=False)
FOLDER = Path(__file__).parent / "static"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_FOREVER = "public, max-age=31536000, immutable"
_HASH_LENGTH = 16


@dataclass(frozen=True)
class StaticFile:
    """A file as it is sent: `packed` is its content by gzip."""

    content: bytes
    packed: bytes
    media_type: str
    etag: str


def asset(name: str) -> str:
    """The address of a static file, for templates."""
    return f"{STATIC}{content_hash()}/{name}"


@cache
def content_hash() -> str:
    """A hash of the names and contents of all static files."""
    digest = hashlib.sha256()
    for name in file_names():
        content = (FOLDER / name).read_bytes()
        digest.update(f"{name}\n{len(content)}\n".encode() + content)
    return digest.hexdigest()[:_HASH_LENGTH]


@cache
def file_names() -> tuple[str, ...]:
    """The static files, by their path below the folder."""
    paths = (path for path in FOLDER.rglob("*") if path.is_file() and path.suffix in _TYPES)
    return tuple(sorted(path.relative_to(FOLDER).as_posix() for path in paths))


@cache
def static_file(name: str) -> StaticFile:
    """A static file, packed once per process. NotFoundError for another name, which the cache does not keep."""
    if name not in file_names():
        raise NotFoundError("There is no such static file.")
    content = (FOLDER / name).read_bytes()
    etag = f'"{hashlib.sha256(content).hexdigest()[:_HASH_LENGTH]}"'
    packed = gzip.compress(content, compresslevel=9, mtime=0)
    return StaticFile(content, packed, _TYPES[Path(name).suffix], etag)


@router.get(STATIC + "{digest}/{name:path}")
def get_static(request: Request, digest: str, name: str) -> Response:
    """Returns a file; one that was asked for under an older hash is not kept by the browser."""
    file = static_file(name)
    headers = {
        "ETag": file.etag,
        "Cache-Control": _FOREVER if digest == content_hash() else "no-cache",
        "Vary": "Accept-Encoding",
        "X-Content-Type-Options": "nosniff",
    }
    if request.headers.get("if-none-match") == file.etag:
        return Response(status_code=304, headers=headers)
    if "gzip" in request.headers.get("accept-encoding", ""):
        return Response(file.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=file.media_type)
    return Response(file.content, headers=headers, media_type=file.media_type)
