"""What Tab offers: tables behind FROM, columns of the statement's tables, functions, keywords, dot commands, files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from hybrid.cli.shell.completion import ShellCompleter
from hybrid.cli.shell.highlighting import SqlHighlighter
from hybrid.cli.shell.names import CatalogNames
from hybrid.errors import MachineError
from hybrid.sql.vocabulary import function_names

TABLES = {
    "orders": (["REALTIME", "OFFLINE"], ["order_id", "customer", "order", "unit price"]),
    "rides": (["REALTIME"], ["ride_id", "city", "customer"]),
}


class Catalog:
    """The verbs that completion asks; `fails`: the server does not answer."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.fails = False
        self.now = 0.0

    def ask(self, verb: str, **arguments: str) -> Any:
        self.asked.append(verb)
        if self.fails:
            raise MachineError("The server does not answer.")
        if verb == "table_list":
            return [{"name": name, "halves": halves} for name, (halves, _) in TABLES.items()]
        return {"columns": dict.fromkeys(TABLES[arguments["table"]][1], "STRING")}


@pytest.fixture
def catalog() -> Catalog:
    return Catalog()


def offered(catalog: Catalog, text: str) -> list[str]:
    """The texts that Tab offers at the `|`, or at the end."""
    before, _, after = text.partition("|")
    completer = ShellCompleter(CatalogNames(catalog.ask, lambda: catalog.now))
    document = Document(before + after, len(before))
    return [one.text for one in completer.get_completions(document, CompleteEvent())]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("select * from ", ["orders", "rides", "orders_OFFLINE", "orders_REALTIME"]),
        ("select * from ORD", ["orders", "orders_OFFLINE", "orders_REALTIME"]),
        ("select * from rides r, o", ["orders", "orders_OFFLINE", "orders_REALTIME"]),
        ("select * from rides join orders_o", ["orders_OFFLINE"]),
        ("select cus| from orders", ["customer"]),
        ("select o.| from orders_OFFLINE o", ["order_id", "customer", '"order"', '"unit price"']),
        ("select o.cit| from orders o join rides r", []),
        ("select r.c| from orders o join rides as r", ["city", "customer"]),
        ("select rides.c| from rides", ["city", "customer"]),
        ('select "unit| from orders', ['"unit price"']),
        ("select $seg| from orders", ["$segmentName"]),
        ("select distinctcountb", ["distinctcountbitmap(", "distinctcountbitmapmv("]),
        ("sel", ["select"]),
        ("SEL", ["SELECT"]),
        ("select 1 from orders group", ["group", "group_concat(", "grouping(", "grouping_id("]),
        ("set time", ["timeoutMs"]),
        ("select 'cus", []),
        ("select 1 -- cus", []),
        ("select 1 /* cus", []),
        ("select 1; select * from ri", ["rides"]),
        ("select cus| from rides; select * from orders", ["customer"]),
        ("", []),
    ],
)
def test_statements(catalog: Catalog, text: str, found: list[str]) -> None:
    assert offered(catalog, text) == found


def test_without_from_the_columns_of_all_tables(catalog: Catalog) -> None:
    assert offered(catalog, "select c")[:2] == ["customer", "city"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (".ta", ["tables"]),
        ("\\wa", ["watch"]),
        ("select 1;\n.ti", ["timing"]),
        (".schema o", ["orders"]),
        (".d ri", ["rides"]),
        (".format j", ["json", "jsonl"]),
        (".timing o", ["on", "off"]),
        (".as-of ", ["now"]),
        (".explain select * from ri", ["rides"]),
        (".help wat", ["watch"]),
        (".nosuch x", []),
    ],
)
def test_dot_commands(catalog: Catalog, text: str, found: list[str]) -> None:
    assert offered(catalog, text) == found


def test_files(catalog: Catalog, tmp_path: Path) -> None:
    (tmp_path / "a.sql").touch()
    (tmp_path / "a.d").mkdir()
    (tmp_path / ".hidden").touch()
    assert offered(catalog, f".read {tmp_path}/a") == ["a.d/", "a.sql"]
    assert offered(catalog, f".output {tmp_path}/") == ["a.d/", "a.sql"]
    assert offered(catalog, f".read {tmp_path}/none/") == []


def test_names_are_fetched_seldom_and_kept_where_the_server_is_gone() -> None:
    catalog = Catalog()
    names = CatalogNames(catalog.ask, lambda: catalog.now)
    assert names.columns(["orders"]) == names.columns(["orders"]) and names.tables() == names.tables()
    assert catalog.asked == ["table_show", "table_list"]
    catalog.fails, catalog.now = True, 60.0
    assert names.tables()[0] == "orders" and names.columns(["orders"])[0] == "order_id"
    assert len(catalog.asked) == 4
    assert CatalogNames(catalog.ask).tables() == []


def test_functions_are_pinot_s_and_those_that_are_allowed() -> None:
    assert {"datetrunc", "jsonextractscalar", "count", "regexp_extract"} <= set(function_names())
    assert "read_parquet" not in function_names() and "!=" not in function_names()


def test_colours() -> None:
    line = SqlHighlighter().lex_document(Document("select sum(x)\nfrom t -- a\nwhere s = 'b"))
    assert [style for style, text, *_ in line(0) if text in ("select", "sum")] == [
        "class:sql.keyword", "class:sql.function",
    ]  # fmt: skip
    assert ("class:sql.comment", "-- a") in line(1) and ("class:sql.string", "'b") in line(2)
    assert line(3) == [] and SqlHighlighter().lex_document(Document(""))(0) == []
