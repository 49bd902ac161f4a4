"""Uploaded files: streamed to `<home>/uploads/<id>/`, however large they are."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO

from fastapi import Request
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from hybrid.errors import BusyError, UsageError
from hybrid.runtime import durable
from hybrid.runtime.disk import free_bytes, full_disk, reserve_bytes

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

_FOLDER = "uploads"
_KEPT_S = 86_400.0  # longer than a run waits in the queue; then files of a crashed process are removed
_NAME_MAX = 100
_USAGE = "Send a form with one file: curl -F file=@data.json"


class Uploads:
    """Receives uploaded files, at most `most` at a time. Not thread-safe: use it on the event loop only.

    After each `checked_bytes` it looks whether the disk still has space.
    """

    def __init__(self, most: int = 4, checked_bytes: int = 32 * 1024**2) -> None:
        self._most, self._receiving = most, 0
        self._checked_bytes = checked_bytes

    async def receive(self, request: Request, home: Path) -> Path:
        """Store the single file of the request's form in its own folder; the caller removes it (`remove_upload`).

        UsageError unless the form holds exactly one non-empty file; BusyError while too many files are received;
        MachineError if the disk lacks space. After an error nothing is left on disk.
        """
        if self._receiving >= self._most:
            raise BusyError(f"{self._most} files are received at this moment.", hint="Send it again later.")
        self._receiving += 1
        try:
            return await _receive(request, home / _FOLDER / uuid.uuid4().hex, self._checked_bytes)
        finally:
            self._receiving -= 1


async def _receive(request: Request, folder: Path, checked_bytes: int) -> Path:
    length = request.headers.get("content-length", "0")  # a number: the middleware has checked it
    await run_in_threadpool(_prepare, folder, int(length))
    try:
        return await _received(request, folder, checked_bytes)
    except BaseException:
        # Shielded, as the request may have been cancelled; in a thread, as removing a large folder can take long.
        await asyncio.shield(run_in_threadpool(shutil.rmtree, folder, ignore_errors=True))
        raise


async def remove_upload(file: Path) -> None:
    """Remove a received file with its folder."""
    await run_in_threadpool(shutil.rmtree, file.parent, ignore_errors=True)


def store_files(home: Path, files: Sequence[tuple[str, IO[bytes]]]) -> Path:
    """Store the files of a form, by name and content, in a folder of their own: the file, or the folder of several.

    They keep the endings of their names. What a crash leaves behind is removed by a later upload.
    """
    folder = home / _FOLDER / uuid.uuid4().hex
    _prepare(folder, sum(_size(file) for _, file in files))
    stored: list[Path] = []
    try:
        for number, (name, file) in enumerate(files):
            path = folder / (_plain_name(name) if len(files) == 1 else f"{number}-{_plain_name(name)}")
            with path.open("xb") as target:
                shutil.copyfileobj(file, target)
            stored.append(path)
        durable.sync_files(stored, home)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return stored[0] if len(stored) == 1 else folder


def remove_stored(stored: Path) -> None:
    """Remove what `store_files` has stored."""
    shutil.rmtree(stored if stored.is_dir() else stored.parent, ignore_errors=True)


def _size(file: IO[bytes]) -> int:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


def _plain_name(name: str) -> str:
    """A file name without folders and special characters. Readers skip names that begin with a dot or `_`."""
    plain = re.sub(r"[^A-Za-z0-9.-]+", "-", name.replace("\\", "/").rpartition("/")[2])[-_NAME_MAX:]
    return plain.lstrip(".-") or "file"


def _prepare(folder: Path, length: int) -> None:
    _sweep(folder.parent)
    _require_room(folder, length)
    folder.mkdir(parents=True)


def _require_room(folder: Path, length: int) -> None:
    """MachineError if the upload would leave less free disk space than operations need."""
    if free_bytes(folder) - length < reserve_bytes(folder):
        raise full_disk(folder)


async def _received(request: Request, folder: Path, checked_bytes: int) -> Path:
    kind, options = parse_options_header(request.headers.get("content-type"))
    if kind != b"multipart/form-data" or not options.get(b"boundary"):
        raise UsageError(_USAGE)
    parts = _UploadParts(folder, checked_bytes)
    try:
        parser = MultipartParser(options[b"boundary"], parts.callbacks())
        async for chunk in request.stream():
            await run_in_threadpool(parser.write, chunk)
        parser.finalize()
    except FormParserError as error:
        raise UsageError(f"The form cannot be read: {error}. {_USAGE}") from error
    except ClientDisconnect as error:
        raise UsageError("The connection ended before the file did.") from error
    finally:
        parts.close()
    if len(parts.whole) != 1:
        raise UsageError(f"The form holds {len(parts.whole)} whole files. {_USAGE}")
    if not parts.whole[0].stat().st_size:
        raise UsageError("The file of the form is empty.")
    # Stored before its job is queued: after a power failure a queued job must not read an empty file.
    await run_in_threadpool(durable.sync_files, parts.whole, folder.parent.parent)
    return parts.whole[0]


class _UploadParts:
    """Writes the files of a form while they arrive; other fields are ignored."""

    def __init__(self, folder: Path, checked_bytes: int) -> None:
        self._folder, self._checked_bytes = folder, checked_bytes
        self._name = self._value = self._disposition = b""
        self._file: BinaryIO | None = None
        self._unchecked = 0
        self.whole: list[Path] = []

    def callbacks(self) -> MultipartCallbacks:
        """Return the callbacks for the parser."""
        return {
            "on_header_field": self._take_name,
            "on_header_value": self._take_value,
            "on_header_end": self._end_header,
            "on_headers_finished": self._begin,
            "on_part_data": self._write,
            "on_part_end": self._end,
        }

    def close(self) -> None:
        """Close a file whose upload broke off."""
        if self._file is not None:
            self._file.close()

    def _take_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _take_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = self._value.strip()
        self._name = self._value = b""

    def _begin(self) -> None:
        _, options = parse_options_header(self._disposition)
        self._disposition = b""
        if b"filename" in options:
            if self.whole:  # refused early, before another file is written to disk
                raise UsageError(f"The form holds 2 whole files, or more. {_USAGE}")
            self._file = (self._folder / f"file{len(self.whole)}").open("wb")

    def _write(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])
            self._unchecked += end - start
            if self._unchecked >= self._checked_bytes:  # a chunked body does not declare its length
                self._unchecked = 0
                _require_room(self._folder, 0)

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()
            self.whole.append(Path(self._file.name))
            self._file = None


def _sweep(uploads: Path) -> None:
    for folder in uploads.glob("*"):
        with suppress(OSError):
            if time.time() - folder.stat().st_mtime > _KEPT_S:
                shutil.rmtree(folder, ignore_errors=True)
