"""`hybrid query -o`: files and pipes, with and without a server; what is refused; what an interrupt leaves."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.cli.main import run
from hybrid.config.settings import load_settings
from hybrid.progress import Silent
from tests.serve.app import App, lay_orders

SQL = "select order_id, customer, amount from orders_OFFLINE order by order_id"
MANY = "select a.order_id from orders_OFFLINE a" + "".join(f", orders_OFFLINE b{place}" for place in range(13))
ENDLESS = "select a.order_id from orders_OFFLINE a" + "".join(f", orders_OFFLINE b{place}" for place in range(40))
CSV = "order_id,customer,amount\n1,ada,1.5\n2,ada,3.0\n"


@pytest.fixture
def at(tmp_path: Path) -> list[str]:
    """The options that name a home with the table orders."""
    folder = tmp_path / "home"
    folder.mkdir()
    hy = Hybrid(load_settings(home=folder), Silent())
    lay_orders(hy)
    hy.close()
    return ["--home", str(folder)]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[list[str]]:
    app = App(tmp_path / "served")
    lay_orders(app.home)
    (tmp_path / "elsewhere").mkdir()
    yield ["--server", app.url, "--home", str(tmp_path / "elsewhere")]
    app.close()


class Bytes(io.TextIOWrapper):
    """Standard output whose bytes are kept."""

    def __init__(self, is_terminal: bool = False) -> None:
        self.kept = io.BytesIO()
        super().__init__(self.kept, encoding="utf-8", write_through=True)
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.mark.slow
def test_a_file_and_a_sentence(at: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    assert run([*at, "query", SQL, "-o", str(path)]) == 0
    out, err = capsys.readouterr()
    assert out == "" and path.read_text() == CSV
    assert err.startswith(f"Wrote 2 rows ({len(CSV)} B) to {path} in ") and err.endswith(" s.\n")
    assert run(["query", SQL, "--output", str(tmp_path / "a.parquet"), *at]) == 0
    assert pq.read_table(tmp_path / "a.parquet").num_rows == 2


@pytest.mark.slow
def test_a_server_s_rows(server: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.csv"
    assert run([*server, "query", SQL, "-o", str(path)]) == 0
    assert path.read_text() == CSV and "Wrote 2 rows" in capsys.readouterr().err
    assert run([*server, "query", "select nope from orders", "-o", str(tmp_path / "b.csv")]) == 1
    assert "Column 'nope' does not exist" in capsys.readouterr().err
    assert run([*server, "query", MANY, "-o", str(tmp_path / "b.parquet")]) == 0
    assert pq.read_table(tmp_path / "b.parquet").num_rows == 2**14
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.csv", "b.parquet", "elsewhere", "served"]


@pytest.mark.slow
def test_all_rows_without_a_limit(at: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A table shows 10 of them and warns; an export is whole."""
    assert run([*at, "query", MANY, "--json"]) == 0
    out, err = capsys.readouterr()
    assert len(json.loads(out)) == 10 and "Only the first 10 rows are shown" in err
    assert run([*at, "query", MANY, "-o", str(tmp_path / "a.jsonl")]) == 0
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 2**14
    assert "Wrote 16,384 rows" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("args", [["--format", "csv", "-o", "-"], ["-o", "-", "--format", "csv"]])
def test_standard_output(at: list[str], monkeypatch: pytest.MonkeyPatch, args: list[str]) -> None:
    out = Bytes()
    monkeypatch.setattr(sys, "stdout", out)
    assert run([*at, "query", SQL, *args]) == 0
    assert out.kept.getvalue().decode() == CSV


@pytest.mark.slow
@pytest.mark.parametrize("args", [["--format", "arrow", "query", SQL], ["query", SQL, "--format", "arrow"]])
def test_binary_formats_go_to_a_pipe(at: list[str], monkeypatch: pytest.MonkeyPatch, args: list[str]) -> None:
    out = Bytes()
    monkeypatch.setattr(sys, "stdout", out)
    assert run([*at, *args]) == 0
    assert pa.ipc.open_stream(out.kept.getvalue()).read_all().num_rows == 2


def test_binary_formats_refuse_a_terminal(
    at: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = Bytes(is_terminal=True)
    monkeypatch.setattr(sys, "stdout", out)
    assert run([*at, "query", SQL, "--format", "parquet"]) == 2
    assert "parquet is not for a terminal" in capsys.readouterr().err and out.kept.getvalue() == b""


def test_markdown_without_a_file(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*at, "query", SQL, "--format", "markdown"]) == 0
    expected = "| order_id | customer | amount |\n| ---: | --- | ---: |\n| 1 | ada | 1.5 |\n| 2 | ada | 3.0 |\n"
    assert capsys.readouterr().out == expected
    assert run([*at, "table", "show", "orders", "--format", "markdown"]) == 0
    assert capsys.readouterr().out.startswith("| name | value |\n| --- | --- |\n| name | orders |\n")


@pytest.mark.slow
def test_the_format_beats_the_suffix(at: list[str], tmp_path: Path) -> None:
    assert run([*at, "query", SQL, "-o", str(tmp_path / "a.txt"), "--format", "csv"]) == 0
    assert (tmp_path / "a.txt").read_text() == CSV
    assert run([*at, "query", SQL, "-o", "/dev/null", "--format", "json"]) == 0


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["-o", "DIR/a.xls"], 2, ["suffix '.xls' names no format", ".csv, .json, .jsonl"]),
        (["-o", "DIR/a"], 2, ["a name without a suffix needs a format"]),
        (["-o", "DIR/taken.csv"], 4, ["exists already. Nothing was written", "--force"]),
        (["-o", "DIR/no/a.csv"], 1, ["folder", "does not exist"]),
        (["-o", "DIR", "--format", "csv"], 2, ["is a folder"]),
        (["-o", "-"], 2, ["-o - needs a format"]),
        (["-o", "-", "--format", "table"], 2, ["A table is for a terminal"]),
        (["-o", "DIR/a.csv", "--format", "xls"], 2, ["'xls' is not one of"]),
        (["-o", "DIR/a.csv", "--explain"], 2, ["--explain runs no statement"]),
        (["--force"], 2, ["--force replaces the file of -o"]),
    ],
)
def test_what_is_refused(
    at: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], args: list[str], code: int, words: list[str]
) -> None:
    (tmp_path / "taken.csv").write_text("mine")
    assert run([*at, "query", SQL, *(arg.replace("DIR", str(tmp_path)) for arg in args)]) == code
    said = capsys.readouterr().err
    assert all(word in said for word in words), said
    assert sorted(item.name for item in tmp_path.iterdir()) == ["home", "taken.csv"]
    assert (tmp_path / "taken.csv").read_text() == "mine"


@pytest.mark.slow
def test_force_replaces(at: list[str], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("old")
    assert run([*at, "query", SQL, "-o", str(tmp_path / "a.csv"), "--force"]) == 0
    assert (tmp_path / "a.csv").read_text() == CSV


@pytest.mark.parametrize("args", [["--format", "parquet", "table", "list"], ["table", "list", "--format", "parquet"]])
def test_other_commands_have_no_binary_formats(
    at: list[str], capsys: pytest.CaptureFixture[str], args: list[str]
) -> None:
    assert run([*at, *args]) == 2
    assert "parquet" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this machine has no /dev/full")
def test_a_full_disk(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run([*at, "query", MANY, "-o", "/dev/full", "--format", "csv"]) == 1
    assert "error: /dev/full: No space left on device" in capsys.readouterr().err


@pytest.mark.process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("through", ["home", "server"])
def test_an_interrupted_run_leaves_no_file(
    at: list[str], server: list[str], tmp_path: Path, number: signal.Signals, through: str
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    process = command([*(at if through == "home" else server), "query", ENDLESS, "-o", str(folder / "a.csv")])
    until = time.monotonic() + 60
    while not any(path.stat().st_size for path in folder.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    assert [path.name.endswith(".part") for path in folder.iterdir()] == [True]
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and "interrupted" in said and list(folder.iterdir()) == []


@pytest.mark.process
def test_a_reader_that_has_enough_ends_the_run(at: list[str]) -> None:
    process = command([*at, "query", ENDLESS, "-o", "-", "--format", "csv"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == "order_id\n"
    process.stdout.close()
    assert process.wait(timeout=60) == 1
    assert process.stderr is not None and "error" not in process.stderr.read()
    process.stderr.close()


def command(args: list[str], **more: Any) -> subprocess.Popen[str]:
    code = "import sys; from hybrid.cli.main import main; sys.argv = ['hybrid', *sys.argv[1:]]; main()"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(
        [sys.executable, "-c", code, *args], stderr=subprocess.PIPE, text=True, env=environment, **more
    )


@pytest.mark.slow
@pytest.mark.parametrize("through", ["home", "server"])
def test_parameters(
    at: list[str], server: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str], through: str
) -> None:
    where = at if through == "home" else server
    sql = (
        "select order_id, customer, amount from orders_OFFLINE where customer = :who and order_id in (:ids) order by 1"
    )
    given = ["--param", "who=ada", "--param-json", "ids=[1, 2]"]
    assert run([*where, "query", sql, *given, "--format", "csv"]) == 0
    assert capsys.readouterr().out == CSV
    assert run([*where, "query", sql, *given, "-o", str(tmp_path / "a.csv")]) == 0
    assert (tmp_path / "a.csv").read_text() == CSV
    assert run([*where, "query", sql, *given, "--explain"]) == 0
    assert "ada" in capsys.readouterr().out
    assert run([*where, "query", sql, "--param", "who=ada"]) == 1
    assert "Parameter 'ids' has no value." in capsys.readouterr().err


def test_wrong_parameters(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    for given, words in (
        (["--param", "who"], "--param is written NAME=VALUE, not 'who'."),
        (["--param", "1=2"], "--param is written NAME=VALUE, not '1=2'."),
        (["--param-json", "x=[1"], "Parameter 'x' is no JSON"),
        (["--param", "x=1", "--param-json", "x=1"], "Parameter 'x' has two values."),
    ):
        assert run([*at, "query", SQL, *given]) == 2
        assert words in capsys.readouterr().err
