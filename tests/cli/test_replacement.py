"""`hybrid replacement revert`: an id that does not exist is refused before anybody is asked to confirm it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hybrid.cli.main import run
from hybrid.errors import NotFoundError


@pytest.mark.parametrize(("at_a_terminal", "code"), [(True, 1), (False, 2)])
def test_a_wrong_id_is_refused_before_the_question(
    at_a_terminal: bool, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without a terminal and --yes nothing is asked for at all: wrong usage."""

    class Server:
        def __init__(self, *_: object) -> None:
            pass

        def call(self, verb: str, arguments: Mapping[str, Any]) -> Any:
            if verb == "replacement":
                raise NotFoundError("Replacement 'x' does not exist.")
            assert verb == "table_show"
            return {}

    monkeypatch.setattr("hybrid.cli.dispatch.server_url", lambda cli: "http://prepared")
    monkeypatch.setattr("hybrid.rpc.client.Client", Server)
    monkeypatch.setattr("sys.stdin.isatty", lambda: at_a_terminal, raising=False)
    monkeypatch.delattr("click.confirm")
    assert run(["replacement", "revert", "orders", "x", "--home", str(tmp_path)]) == code
