"""`hybrid completion`: the scripts, and what a shell completes: commands, tables, segments, plans, runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import BashComplete

from hybrid.api.hybrid import connect
from hybrid.cli import dispatch
from hybrid.cli.command import Cli
from hybrid.cli.main import NOUNS, hybrid, run
from tests.serve.app import MOVED, lay_orders


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with the table orders."""
    folder = tmp_path_factory.mktemp("completion") / "home"
    with connect(folder) as opened:
        lay_orders(opened)
        yield folder


def completed(line: str, home: Path | None = None) -> list[str]:
    """What bash would be offered behind a command line."""
    words = line.split(" ")
    at_home = ["--home", str(home)] if home is not None else []
    found = BashComplete(hybrid, {"obj": Cli()}, "hybrid", "_HYBRID_COMPLETE").get_completions(
        [*at_home, *words[:-1]], words[-1]
    )
    return [item.value for item in found]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    out, err = capsys.readouterr()
    assert "_HYBRID_COMPLETE" in out and f"{shell}_complete" in out and err == ""


def test_other_shells_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", "tcsh"]) == 2
    assert "'bash', 'zsh', 'fish'" in capsys.readouterr().err


def test_commands_and_options() -> None:
    assert completed("") == list(NOUNS)
    assert completed("seg") == ["segment"]
    assert "list" in completed("backfill ") and completed("backfill re") == ["resume", "revert"]
    assert completed("query --ex") == ["--explain"]


@pytest.mark.slow
def test_names(home: Path) -> None:
    for line in ("table show or", "segment list o", "move ", "task run or", "task list or", "boundary show o"):
        assert completed(line, home) == ["orders"], line
    assert completed("table show x", home) == []
    assert completed("segment show orders orders_1", home) == [MOVED]
    assert len(completed("segment show orders ", home)) == 3
    assert completed("segment show nosuch ", home) == []


def test_ids(monkeypatch: pytest.MonkeyPatch) -> None:
    def ask(cli: Cli, verb: str, **arguments: Any) -> Any:
        return [{"id": f"{verb}-1"}, {"id": f"{verb}-2"}, {"id": "other"}]

    monkeypatch.setattr(dispatch, "ask", ask)
    assert completed("backfill status backfills") == ["backfills-1", "backfills-2"]
    assert completed("backfill run backfills-2") == ["backfills-2"]
    assert completed("backfill run plan.j") == ["plan.j"]  # a file, which the shell completes
    assert completed("replacement show orders repl") == ["replacements-1", "replacements-2"]
    assert completed("task show ru") == ["runs-1", "runs-2"]


def test_nothing_is_said_where_names_cannot_be_had(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert completed("table show ", tmp_path / "none") == []
    assert completed("--server http://127.0.0.1:1 table show ", tmp_path) == []
    monkeypatch.setattr(dispatch, "ask", lambda *_, **__: time.sleep(3))  # longer than a shell may wait
    assert completed("table show ", tmp_path) == []
    assert capsys.readouterr() == ("", "")


@pytest.mark.process
def test_bash_completes_a_table(home: Path, tmp_path: Path) -> None:
    """The script as bash runs it."""
    program = tmp_path / "hybrid"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m hybrid.cli "$@"\n')
    program.chmod(0o755)
    script = (
        'eval "$(hybrid completion bash)"\n'
        f"COMP_WORDS=(hybrid --home {home} segment list or); COMP_CWORD=5; _hybrid_completion hybrid\n"
        'echo "${COMPREPLY[@]}"'
    )
    env = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=100, env=env)
    assert done.stdout == "orders\n", done.stderr
