"""What Python users see: results, reports, tables and boundaries at a prompt and in a notebook."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid
from hybrid.ingest.seal import SealReport
from hybrid.query.explain import Explanation
from hybrid.query.result import QueryResult
from hybrid.runtime.text_table import html_table
from hybrid.table.boundary import INFINITE, Boundary, PartitionKey
from hybrid.table.effective import EffectiveBoundary
from hybrid.table.plans import BucketState, Counts, Plan, PlannedBucket
from tests.serve.app import lay_orders

KEY = PartitionKey("c", "<script>", 0, 0)
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"


@pytest.fixture
def hy(tmp_path: Path) -> Iterator[Hybrid]:
    with hybrid.connect(tmp_path / "home") as opened:
        lay_orders(opened)
        yield opened


def result(*rows: tuple[object, ...], warnings: tuple[str, ...] = ()) -> QueryResult:
    return QueryResult(["name", "n"], ["STRING", "LONG"], list(rows), warnings=warnings)


def test_a_result_prints_as_a_table() -> None:
    shown = str(result(("ada", 1), ("grace", 20)))
    assert shown.splitlines() == ["name    n", "-----  --", "ada     1", "grace  20", "2 rows"]
    assert repr(result(("ada", 1))).endswith("1 row")


def test_a_long_result_prints_its_first_rows_and_short_cells() -> None:
    shown = str(result(*[("x" * 500, number) for number in range(1000)], warnings=("cut",)))
    lines = shown.splitlines()
    assert len(lines) == 44 and max(map(len, lines)) < 100
    assert lines[-2:] == ["1000 rows; 40 are shown", "warning: cut"]


def test_a_result_is_iterated_and_has_a_length() -> None:
    found = result(("ada", 1), ("grace", 2))
    assert list(found) == [("ada", 1), ("grace", 2)] and len(found) == 2
    assert [name for name, _ in found] == ["ada", "grace"]
    assert len(result()) == 0 and str(result()).splitlines()[-1] == "0 rows"


def test_values_of_every_type_are_shown() -> None:
    row = (b"\x00\xff", Decimal("1.50"), datetime(2026, 11, 26), [1, 2], None, True, float("nan"))
    names = [*"abcdefg"]
    shown = str(QueryResult(names, ["STRING"] * 7, [row]))
    for cell in ("00ff", "1.50", "2026-11-26T00:00:00Z", "[1, 2]", "true", "NaN"):
        assert cell in shown


def test_html_escapes_values_names_and_notes() -> None:
    shown = QueryResult([HOSTILE], ["STRING"], [(HOSTILE,)], warnings=(HOSTILE,))._repr_html_()
    assert "<script" not in shown and "\x1b" not in shown and "\u202e" not in shown
    assert shown.count("&lt;script&gt;") == 3
    assert "<script" not in html_table(["a"], [([HOSTILE],)])


def test_text_escapes_control_characters() -> None:
    shown = str(result((HOSTILE, 1)))
    assert "\x1b" not in shown and "\u202e" not in shown


def test_a_boundary_is_drawn_with_both_halves() -> None:
    boundary = Boundary(1_632_463_351_000, {KEY: 42})
    drawn = boundary._repr_html_()
    root = ElementTree.fromstring(drawn)  # well-formed, and nothing outside of it
    texts = [element.text or "" for element in root.iter() if element.tag.endswith("text")]
    assert {"OFFLINE", "REALTIME", "from the frontier on"} <= set(texts)
    assert any("2021-09-24T06:02:31Z" in text for text in texts)
    assert any("42" in text for text in texts) and "<script" not in drawn
    assert "href" not in drawn and "url(" not in drawn


@pytest.mark.parametrize(
    ("boundary", "expected", "hidden"),
    [
        (EffectiveBoundary(), "OFFLINE covers no time", 0),
        (EffectiveBoundary(INFINITE), "any time", 0),
        (EffectiveBoundary(0, time_alone=True, restricts_offline=True), "1970-01-01T00:00:00Z", 2),
        (EffectiveBoundary(0, restricts_offline=True), "1970-01-01T00:00:00Z", 1),
    ],
)
def test_a_drawing_says_what_is_hidden(boundary: EffectiveBoundary, expected: str, hidden: int) -> None:
    drawn = boundary._repr_html_()
    assert expected in drawn and drawn.count(">hidden<") == hidden


def test_many_partitions_make_a_drawing_of_bounded_height() -> None:
    frontier = {PartitionKey("c", "t", 0, number): 1 for number in range(500)}
    assert "and 492 more partitions" in Boundary(0, frontier)._repr_html_()


def test_a_report_shows_its_sentence() -> None:
    report = SealReport(("a",), 3, "Sealed segment 'a'.")
    assert repr(report) == "<SealReport: Sealed segment 'a'.>" and str(report) == "Sealed segment 'a'."


def test_a_plan_shows_its_sentence_and_its_buckets() -> None:
    bucket = PlannedBucket(0, 86_400_000, next(iter(BucketState)), Counts(5, 4, 0, 1, 0))
    plan = Plan("p", "orders", "", "", {}, "", 1, None, "", "", (bucket,), (), sentence="1 row of <b> goes.")
    assert repr(plan) == "<Plan: 1 row of <b> goes.>"
    drawn = plan._repr_html_()
    assert "1970-01-02T00:00:00Z" in drawn and "rows_before" in drawn and "&lt;b&gt;" in drawn


def test_an_explanation_prints_its_lines() -> None:
    found = Explanation("orders[OFFLINE=1]", [], "SELECT 1 < 2", ["w"])
    assert repr(found) == "<Explanation: orders[OFFLINE=1]>"
    assert str(found).splitlines() == [
        "revision: orders[OFFLINE=1]",
        "engine: duckdb",
        "statement: SELECT 1 < 2",
        "warning: w",
    ]
    assert "SELECT 1 &lt; 2" in found._repr_html_()


def test_a_home_and_a_table_are_short_at_the_prompt(hy: Hybrid) -> None:
    assert re.fullmatch(r"<Hybrid /.*home>", repr(hy))
    table = hy.table("orders")
    assert repr(table) == "<Table orders: REALTIME, OFFLINE>"
    drawn = table._repr_html_()
    assert "<svg" in drawn and "customer" in drawn and "time column ts" in drawn


def test_a_with_statement_closes_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []
    monkeypatch.setattr(Hybrid, "close", lambda self: closed.append(self))
    with pytest.raises(ZeroDivisionError), hybrid.connect(tmp_path) as opened:
        raise ZeroDivisionError
    assert closed == [opened]
