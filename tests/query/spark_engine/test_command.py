"""`hybrid query --engine spark`: in this process, also beside a server of the home; a server refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.cli.main import run
from hybrid.config.settings import load_settings
from hybrid.lake.commit_context import CommitContext
from hybrid.progress import Silent
from tests.serve.app import App, lay_orders

SQL = "select order_id, customer, amount from orders_OFFLINE order by order_id"
COUNTED = "select customer, count(*) as n from orders_OFFLINE group by customer"


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
def server(tmp_path: Path) -> Iterator[App]:
    app = App(tmp_path / "served")
    lay_orders(app.home)
    yield app
    app.close()


@pytest.mark.spark
@pytest.mark.slow
def test_a_statement_and_a_file_of_results(
    at: list[str], workbench: CommitContext, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert workbench.spark is not None  # the command takes the session of this process
    assert run(["query", f"{COUNTED} -- by whom", "--engine", "spark", "--json", *at]) == 0
    assert json.loads(capsys.readouterr().out) == [{"customer": "ada", "n": 2}]
    files = {engine: tmp_path / f"{engine}.csv" for engine in ("spark", "duckdb")}
    for engine, file in files.items():
        assert run(["query", SQL, "--engine", engine, "-o", str(file), *at]) == 0
    assert files["spark"].read_text() == files["duckdb"].read_text()
    assert len(files["spark"].read_text().splitlines()) == 3
    with Hybrid(load_settings(home=Path(at[1])), Silent()) as hy:
        assert hy.query(f"set engine = 'spark'; {COUNTED}").rows == [("ada", 2)]
        logged = hy.queries(limit=1)[0]
    assert "engine = 'spark'" in logged.statement


def test_an_explanation_needs_no_spark(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", COUNTED, "--engine", "spark", "--explain", "--json", *at]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["engine"] == "spark"
    assert "GROUP BY `customer`" in plan["sql"]


def test_a_refusal_says_what_would_do(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "select median(amount) from orders_OFFLINE", "--engine", "spark", *at]) == 1
    error = capsys.readouterr().err
    assert "Spark does not run MEDIAN. It stands at line 1, column 8" in error
    assert "Leave out engine = 'spark': DuckDB runs it." in error


def test_an_engine_that_does_not_exist(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", COUNTED, "--engine", "presto", *at]) == 2
    assert "'presto' is not one of 'duckdb', 'spark'" in capsys.readouterr().err


def test_without_java_the_command_says_what_to_install(
    at: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(Path(at[1]) / "nowhere"))
    assert run(["query", COUNTED, "--engine", "spark", *at]) == 1
    error = capsys.readouterr().err
    assert "JAVA_HOME is" in error
    assert "set it to the folder of a Java 17" in error


@pytest.mark.slow
def test_a_server_refuses_and_names_the_command(
    server: App, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    at_server = ["--server", server.url, "--home", str(tmp_path / "elsewhere")]
    assert run(["query", f"set engine = 'spark'; {COUNTED}", *at_server]) == 1
    error = capsys.readouterr().err
    assert "A server answers by DuckDB alone: engine = 'spark' runs in the process of its user." in error
    assert "hybrid query --engine spark" in error
    assert run(["query", COUNTED, "--engine", "duckdb", "--json", *at_server]) == 0
    capsys.readouterr()
    assert run(["query", COUNTED, "--engine", "spark", *at_server]) == 2
    assert "`hybrid query --engine spark` works on a home of this machine" in capsys.readouterr().err
