"""`hybrid purge`: what it would find is shown, and what it refuses is said, before it asks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from hybrid.cli.main import run
from hybrid.errors import SpecError

WORDS = ["purge", "orders", "--where", "customer_id = 7"]


def answering(monkeypatch: pytest.MonkeyPatch, *, refuses: bool) -> list[str]:
    """A server whose purges find nothing, on a terminal whose user declines; returns what happens, in order."""
    happened: list[str] = []

    class Server:
        def __init__(self, *_: object) -> None:
            pass

        def call(self, verb: str, arguments: Mapping[str, Any]) -> Any:
            happened.append(f"{verb} {arguments['dry_run']}")
            if refuses:
                raise SpecError("Table 'orders' cannot be purged.")
            return {"sentence": "4 rows match.", "before": [], "after": [], "outside": [], "warnings": []}

    def declined(*_: object, **__: object) -> None:
        happened.append("question")
        raise click.Abort

    monkeypatch.setattr("hybrid.cli.dispatch.server_url", lambda cli: "http://prepared")
    monkeypatch.setattr("hybrid.rpc.client.Client", Server)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", declined)
    return happened


def test_a_purge_shows_what_it_would_find_before_it_asks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    happened = answering(monkeypatch, refuses=False)
    assert run([*WORDS, "--home", str(tmp_path)]) == 130
    assert happened == ["purge True", "question"]


def test_a_purge_is_refused_before_it_asks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    happened = answering(monkeypatch, refuses=True)
    assert run([*WORDS, "--home", str(tmp_path)]) == 1
    assert happened == ["purge True"]
