"""Uploaded files: one a form, a few at a time, with room on the disk, and never removed on the event loop."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from hybrid.runtime.disk import FREE_MIN
from hybrid.serve import uploads
from tests.serve.app import OFFLINE, SCHEMA, App

PATH = "/ingestFromFile?tableNameWithType=orders_OFFLINE&batchConfigMapStr=" + quote(
    json.dumps({"inputFormat": "json"})
)
HEADERS = {"Content-Type": "multipart/form-data; boundary=x"}
PART = b'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n{}\r\n'


@pytest.fixture
def table(app: App) -> App:
    app.ok("POST", "/schemas", SCHEMA)
    app.ok("POST", "/tables", OFFLINE)
    return app


def kept(app: App) -> list[Path]:
    folder = app.home.home / "uploads"
    return list(folder.iterdir()) if folder.exists() else []


def test_a_second_file_ends_the_form(table: App) -> None:
    """19: 30,000 files in 1.9 MB. The second one is refused when it begins, whatever follows."""
    opened: list[Path] = []
    begin = uploads._UploadParts._begin

    def counted(parts: uploads._UploadParts) -> None:
        begin(parts)
        opened.extend(parts._folder.iterdir())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uploads._UploadParts, "_begin", counted)
        status, sentence = table.refused("POST", PATH, PART * 30_000 + b"--x--\r\n", headers=HEADERS)
    assert status == 400 and sentence.startswith("The form holds 2 whole files")
    assert len(opened) == 1 and kept(table) == []


@pytest.mark.slow
def test_only_some_are_received_at_a_time(table: App) -> None:
    """19: the one too many is told to come later, and the others are received."""
    go, started = threading.Event(), threading.Semaphore(0)

    def slowly() -> Iterator[bytes]:
        yield PART[:40]
        started.release()
        go.wait(20)
        yield PART[40:] + PART

    answers: list[tuple[int, str]] = []
    send = lambda: answers.append(table.refused("POST", PATH, slowly(), headers=HEADERS))  # noqa: E731
    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in threads:
            assert started.acquire(timeout=10)
        deadline = time.monotonic() + 10
        while len(kept(table)) < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert table.refused("POST", PATH, PART, headers=HEADERS)[0] == 429
    finally:
        go.set()
        for thread in threads:
            thread.join()
    assert [status for status, _ in answers] == [400] * 4 and kept(table) == []
    assert table.refused("POST", PATH, PART + PART, headers=HEADERS)[0] == 400, "and there is room again"


@pytest.mark.parametrize("chunked", [False, True])
def test_a_disk_without_room_takes_no_file(table: App, monkeypatch: pytest.MonkeyPatch, chunked: bool) -> None:
    """19: before the first byte where the length is told, else while it comes. Acts keep what they need."""
    free = 2 * FREE_MIN if chunked else FREE_MIN + 100
    monkeypatch.setattr(uploads, "free_bytes", lambda _: free)
    table.app.state.context = replace(table.app.state.context, uploads=uploads.Uploads(checked_bytes=1000))

    def pieces() -> Iterator[bytes]:
        nonlocal free
        yield PART
        free = 0
        yield b"a" * 5000

    body = pieces() if chunked else PART + b" " * 200
    status, sentence = table.refused("POST", PATH, body, headers=HEADERS)
    assert status == 500 and "is full" in sentence
    assert kept(table) == []


def test_nothing_is_removed_on_the_event_loop(table: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """19: a folder of many files takes minutes, in which nothing else would be answered."""
    threads: list[bool] = []
    remove = uploads.shutil.rmtree

    def noted(*args: object, **more: object) -> None:
        try:
            asyncio.get_running_loop()
            threads.append(True)
        except RuntimeError:
            threads.append(False)
        remove(*args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(uploads.shutil, "rmtree", noted)
    table.refused("POST", PATH, PART + PART, headers=HEADERS)
    assert threads == [False]
