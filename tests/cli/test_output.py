from __future__ import annotations

import io
import json
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from hybrid.cli import output
from hybrid.cli.output import TerminalProgress, emit
from tests.cli.terminals import Terminal

ROWS = [
    {"name": "a", "n": 1, "x": None, "raw": b"\x00\xff"},
    {"name": 'long name, with "all"', "n": 20, "x": 0.1, "raw": b""},
]


def printed(data: object, fmt: str, columns: list[str] | None = None, stream: io.StringIO | None = None) -> str:
    out = stream or io.StringIO()
    emit(data, columns, fmt, out)  # type: ignore[arg-type]
    return out.getvalue()


def test_table_off_a_terminal_is_whole() -> None:
    assert printed(ROWS, "table").splitlines() == [
        "name                    n    x  raw",
        "---------------------  --  ---  ----",
        "a                       1       00ff",
        'long name, with "all"  20  0.1',
    ]
    wide = [{"a": "x" * 500, "b": "y" * 500}]
    assert printed(wide, "table").splitlines()[2] == "x" * 500 + "  " + "y" * 500


def test_one_row_is_one_line_and_no_escape_reaches_the_terminal() -> None:
    assert printed([{"a": "1\n2\x1b[31m"}], "table").splitlines()[2] == "1\\n2\\x1b[31m"


def test_wide_characters_align() -> None:
    assert printed([{"a": "日本", "b": 1}], "table").splitlines()[2] == "日本  1"


def test_json_one_array_for_lists_one_object_otherwise() -> None:
    assert json.loads(printed(ROWS, "json")) == [
        {"name": "a", "n": 1, "x": None, "raw": "00ff"},
        {"name": 'long name, with "all"', "n": 20, "x": 0.1, "raw": ""},
    ]
    assert json.loads(printed(ROWS[0], "json"))["n"] == 1
    assert printed([], "json") == "[]\n"


def test_jsonl_and_csv() -> None:
    assert [json.loads(line)["n"] for line in printed(ROWS, "jsonl").splitlines()] == [1, 20]
    assert printed(ROWS, "csv", ["name", "n"]) == 'name,n\na,1\n"long name, with ""all""",20\n'
    assert printed([], "csv", ["name"]) == "name\n"


def test_an_object_is_a_column_of_names() -> None:
    assert printed({"state": "running", "pid": None}, "table") == "state  running\npid\n"


@pytest.mark.parametrize(
    ("value", "as_text", "as_json"),
    [
        (None, "", None),
        (True, "true", True),
        (1e-05, "1e-05", 1e-05),
        (float("nan"), "NaN", "NaN"),
        (float("-inf"), "-Infinity", "-Infinity"),
        (Decimal("1E+3"), "1000", "1000"),
        (Decimal("0.10"), "0.10", "0.10"),
        (datetime(2021, 11, 21, 10, 38, tzinfo=UTC), "2021-11-21T10:38:00Z", "2021-11-21T10:38:00Z"),
        (date(2021, 11, 21), "2021-11-21", "2021-11-21"),
        ((1, None, "ä"), '[1, null, "ä"]', [1, None, "ä"]),
        ({"k": b"\x01"}, '{"k": "01"}', {"k": "01"}),
    ],
)
def test_values(value: object, as_text: str, as_json: object) -> None:
    assert (output.text(value), output.json_value(value)) == (as_text, as_json)


def test_progress_off_a_terminal_is_a_few_lines() -> None:
    now = 0.0
    out = io.StringIO()
    progress = TerminalProgress(out, clock=lambda: now)
    for done in range(1, 53):
        now += 0.5
        progress.step("Fetching jars", done, 52)
    progress.step("Short", 1, 1)
    progress.say("ready")
    lines = out.getvalue().splitlines()
    assert lines[-3:] == ["Fetching jars: 52", "Short: 1", "ready"]
    assert 3 <= len(lines) <= 9 and "\r" not in out.getvalue()


def test_progress_on_a_terminal_is_a_bar() -> None:
    out = Terminal()
    progress = TerminalProgress(out, clock=lambda: 0.0)
    progress.step("Fetching", 1, 2)
    assert "[############............] 1/2" in out.getvalue()
    progress.step("Fetching", 2, 2)
    assert out.getvalue().endswith("\r\x1b[KFetching: 2\n")
