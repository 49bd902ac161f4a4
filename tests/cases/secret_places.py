"""Secrets by reference in tests: they are put where a reference refers to, taken away, and searched for."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.recipes.conftest import RecipeHome

VARIABLE = "HYBRID_TEST_SECRET"


def assert_nowhere(secret: str, home: Path, *said: str) -> None:
    """No file below the home and beside it, and nothing that was said, holds the secret."""
    for path in home.parent.rglob("*"):
        if path.is_file() and path.name not in {"secret", "store", "s3.log"} and "store" not in path.parts:
            assert secret.encode() not in path.read_bytes(), path
    for text in said:
        assert secret not in text


def reference(kind: str, secret: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A reference to the secret, which is put where it refers to."""
    if kind == "env":
        monkeypatch.setenv(VARIABLE, secret)
        return f"${{env:{VARIABLE}}}"
    (folder / "secret").write_text(f"{secret}\n", encoding="utf-8")
    return f"${{file:{folder / 'secret'}}}"


def take_away(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Takes the secret away; what an error has to say of it."""
    if kind == "env":
        monkeypatch.delenv(VARIABLE)
        return f"is ${{env:{VARIABLE}}}, and this process has no environment variable '{VARIABLE}'"
    (folder / "secret").unlink()
    return f"is ${{file:{folder / 'secret'}}}, which cannot be read: it does not exist"


def answers(home: RecipeHome) -> Iterator[str]:
    """What the command line tells of a table and of what was done."""
    for words in ("status", "table show orders", "table list", "connector list orders", "task list", "logs"):
        yield json.dumps(home.run(*words.split())) + home.messages
