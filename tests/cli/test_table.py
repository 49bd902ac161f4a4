"""`hybrid table view` and `hybrid query --as-of`, on a home without a server."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import hybrid
from hybrid.api.hybrid import TableDocuments
from hybrid.cli.main import run

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"


@pytest.fixture
def orders(home: Path) -> Path:
    """A home with the table orders, its OFFLINE half alone."""
    made = hybrid.connect(home)
    made.create_table(TableDocuments.read(DATA / "orders_schema.json", [DATA / "orders_offline_table.json"]))
    made.close()
    return home


@pytest.mark.process
def test_what_is_printed_is_the_code(orders: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["table", "view", "orders", "--for", "duckdb", "--home", str(orders)]) == 0
    code = capsys.readouterr().out
    opened = hybrid.connect(orders)
    made = opened.table("orders").view(for_="duckdb", as_of="orders[OFFLINE=0]")
    opened.close()
    assert (made.code, made.revision, made.engine) == (code, "orders[OFFLINE=0]", "duckdb")
    path = tmp_path / "v.py"
    path.write_text(code, encoding="utf-8")
    done = subprocess.run([sys.executable, "-I", str(path)], capture_output=True, text=True)
    assert done.returncode == 0 and "order_status" in done.stdout, done.stderr


def test_its_words(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["table", "view", "orders", "--home", str(orders)]) == 2
    assert "Missing option '--for'" in capsys.readouterr().err
    assert run(["table", "view", "ordrs", "--for", "spark", "--home", str(orders)]) == 1
    assert "Did you mean 'orders'?" in capsys.readouterr().err
    words = ["table", "view", "orders", "--for", "polars", "--as-of", "orders[OFFLINE=1]", "--home", str(orders)]
    assert run(words) == 1
    assert "OFFLINE of 'orders' has no version 1: its newest is 0." in capsys.readouterr().err


@pytest.mark.slow
def test_a_query_as_of_a_revision(orders: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["query", "select count(*) from orders", "--as-of", "orders[OFFLINE=0]", "--json", "--home", str(orders)]
    assert run(words) == 0
    assert json.loads(capsys.readouterr().out) == [{"count(*)": 0}]
    assert run([*words, "--explain"]) == 0
    assert json.loads(capsys.readouterr().out)["revision"] == "orders[OFFLINE=0]"
    opened = hybrid.connect(orders)
    found = opened.query("select count(*) from orders")
    assert opened.query("select count(*) from orders", as_of=found.revision).rows == found.rows
    assert str(opened.explain("select count(*) from orders", as_of=found.revision).revision) == "orders[OFFLINE=0]"
    opened.close()
