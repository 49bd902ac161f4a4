"""What a terminal shows: columns that fit, readable values, differences, trees, colours, text of others."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Any

import pytest
from rich.cells import cell_len

from hybrid.cli import status
from hybrid.cli.cells import CellKind, View
from hybrid.cli.command import FINDINGS
from hybrid.cli.main import run
from hybrid.cli.output import TerminalProgress, emit
from hybrid.cli.terminal.differences import difference_table
from hybrid.cli.terminal.fitting import Measured, fit
from hybrid.cli.terminal.readable import kind_of, number, readable
from hybrid.cli.terminal.show import show_explanation
from hybrid.replace.report import numbers
from hybrid.table.plans import Counts
from tests.cli.terminals import Terminal
from tests.cli.test_untrusted_text import HOSTILE

LONG = "word " * 40


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("TERM", "xterm-256color")


def shown(data: Any, columns: Any = None, **options: Any) -> list[str]:
    out = Terminal()
    emit(data, columns, stream=out, **options)
    return out.getvalue().splitlines()


# Columns


def column(name: str, width: int, **more: bool) -> Measured:
    return Measured(name, width, len(name), max(map(len, name.split("_"))), **more)


def test_a_table_that_fits_is_as_it_is() -> None:
    assert fit([column("id", 20), column("rows", 5)], 27).widths == {"id": 20, "rows": 5}


def test_names_break_before_anything_else_gives_way() -> None:
    found = fit([column("id", 20), column("offline_rows", 3)], 30, drop=("offline_rows",))
    assert found.widths == {"id": 20, "offline_rows": 7} and not found.dropped


def test_free_text_wraps_in_its_column_then_goes_below_its_row() -> None:
    columns = [column("id", 20), column("result", 90, is_prose=True)]
    assert fit(columns, 60).widths == {"id": 20, "result": 38}
    found = fit(columns, 50)
    assert (found.widths, found.below, found.dropped) == ({"id": 20}, ("result",), ())


def test_two_texts_share_the_room() -> None:
    columns = [column("id", 10), column("reason", 12, is_prose=True), column("result", 90, is_prose=True)]
    assert fit(columns, 80).widths == {"id": 10, "reason": 12, "result": 54}


def test_columns_move_below_and_are_left_out_by_priority() -> None:
    columns = [column(name, 20) for name in ("id", "type", "start", "end", "note")]
    assert fit(columns, 64, drop=("note", "end"), below=("type",)).below == ()
    found = fit(columns, 45, drop=("note", "end"), below=("type", "start"))
    assert (found.below, found.dropped, list(found.widths)) == (("type",), ("note", "end"), ["id", "start"])


def test_columns_of_a_tuple_move_together_and_others_return_to_their_room() -> None:
    columns = [column(name, 20) for name in ("id", "half", "bytes", "start", "end")]
    found = fit(columns, 66, drop=("half", "bytes"), below=(("start", "end"),))
    assert (found.below, found.dropped, list(found.widths)) == ((), ("half", "bytes"), ["id", "start", "end"])
    found = fit(columns, 45, drop=("half", "bytes"), below=(("start", "end"),))
    assert (found.below, found.dropped, list(found.widths)) == (("start", "end"), ("half",), ["id", "bytes"])


def test_further_columns_are_shown_only_with_room() -> None:
    columns = [column("id", 10), column("more", 10)]
    assert list(fit(columns, 22, more=("more",)).widths) == ["id", "more"]
    narrow = fit(columns, 21, more=("more",))
    assert (list(narrow.widths), narrow.dropped) == (["id"], ())


def test_what_fits_no_other_way_wraps_or_is_a_record() -> None:
    assert fit([column("id", 90, can_wrap=True), column("n", 5)], 40).widths == {"id": 33, "n": 5}
    assert fit([column("id", 90), column("n", 5)], 40).as_records


# Tables


def test_ids_times_states_and_numbers_are_whole() -> None:
    row = {
        "id": "run-2d20809138da44e1",
        "created_at": "2026-11-25T04:44:15.732+00:00",
        "state": "FAILED",
        "rows": 196443,
    }
    lines = shown([{**row, "result": LONG.strip()}], View((*row, "result")))
    assert lines[2] == "run-2d20809138da44e1  2026-11-25T04:44:15Z  FAILED  196,443"
    assert lines[3].startswith("    result  word word") and max(map(len, lines)) <= 60


def test_wide_shows_every_column_in_one_line() -> None:
    rows = [{"id": "x" * 58, "user": "ada", "files": 1, "result": LONG.strip()}]
    view = View(("id", "user", "result"), drop=("user",), more=("files",))
    assert shown(rows, view)[-1] == "Not shown at this width: user. --wide shows all."
    assert shown(rows, view, wide=True)[2].split()[:4] == ["x" * 58, "ada", "word", "word"]
    assert len(shown(rows, view, wide=True)) == 3


def test_a_state_that_is_a_sentence_goes_below_its_row() -> None:
    lines = shown([{"table": "orders", "state": "Kafka does not answer."}], View(("table", "state")))
    assert lines[2:] == ["orders  NOT OK", "    state  Kafka does not answer."]


def test_a_command_is_never_broken() -> None:
    hint = "hybrid kafka start --port 9092 --home /a/folder/that/is/so/long/that/it/does/not/fit"
    assert shown([{"id": "a", "hint": hint}], View(("id",), notes=("hint",)))[-1] == f"    hint  {hint}"


def test_a_query_keeps_its_values_and_wraps_its_texts() -> None:
    lines = shown([{"rows": 196443, "bytes": 2848, "state": "OK now", "text": "日本 " * 20}])
    assert lines[2].startswith("196443   2848  OK now  日本") and max(map(cell_len, lines)) <= 60
    assert "".join("".join(lines[2:]).split()).count("日本") == 20


def test_long_counts_in_sentences_have_separators() -> None:
    shown_text = readable("Moved 12031 rows of 1 bucket (2025-11-24T00:00:00Z) at 104000, 1234 files", CellKind.PROSE)
    assert shown_text == "Moved 12,031 rows of 1 bucket (2025-11-24T00:00:00Z) at 104000, 1,234 files"
    counts = Counts(1014, 1014, 0, 0, 1014, {"amount": 1014, "2024": 1200})
    shown_text = readable(f"Corrected 1 bucket: {numbers(counts)}.", CellKind.PROSE)
    assert shown_text == (
        "Corrected 1 bucket: 1,014 rows before, 1,014 after; 0 added, 0 removed, 1,014 changed (amount 1,014, "
        "2024 1,200)."
    )
    assert readable("1014 of 20000 rejected rows; 1500 stay", CellKind.PROSE) == (
        "1,014 of 20,000 rejected rows; 1,500 stay"
    )
    out = Terminal()
    TerminalProgress(out).say("Read 196443 rows of x-2024 rows and v1.2345 files")
    assert out.getvalue() == "Read 196,443 rows of x-2024 rows and v1.2345 files\n"


@pytest.mark.parametrize(
    ("value", "data_type", "expected"),
    [
        ("7.630000000000000000", "BIG_DECIMAL", Decimal("7.63")),
        ("100.000", "BIG_DECIMAL", Decimal(100)),
        ("100", "BIG_DECIMAL", Decimal(100)),
        ("12345678901234567890.123456789012345670", "BIG_DECIMAL", Decimal("12345678901234567890.12345678901234567")),
        ("NaN", "BIG_DECIMAL", "NaN"),
        (55.72000000000001, "DOUBLE", 55.72),
        (7.633333333333334, "DOUBLE", 7.63333333333),
        ("NaN", "DOUBLE", "NaN"),
        (1792972800000, "LONG", 1792972800000),
        (None, "DOUBLE", None),
    ],
)
def test_numbers_of_a_result_are_readable(value: Any, data_type: str, expected: Any) -> None:
    assert repr(number(value, data_type)) == repr(expected) or number(value, data_type) == expected


def test_milliseconds_beside_a_time_are_for_wide() -> None:
    row = {"start": "2025-11-23T00:00:02.125Z", "start_ms": 1763856002125, "buffer_ms": 1}
    assert [line.split()[0] for line in shown(row)] == ["start", "buffer_ms"]
    assert [line.split()[0] for line in shown(row, wide=True)] == list(row)


def test_many_columns_are_records() -> None:
    rows = [{f"c{number}": 10**9 + number for number in range(20)}] * 2
    lines = shown(rows)
    assert lines[0] == "c0   1000000000" and len(lines) == 41


def test_an_object_nests() -> None:
    lines = shown({"bytes": 2848, "columns": {"a": "INT"}, "retention": {}, "inputs": [{"path": "p"}, {"path": LONG}]})
    assert lines[:6] == ["bytes      2.8 kB", "columns", "  a  INT", "retention", "inputs", "  path  p"]
    assert max(map(len, lines)) <= 60 and "".join(lines).count("word") == 40


def test_nothing_of_a_value_reaches_the_terminal_as_control() -> None:
    out = Terminal()
    emit([{"k": HOSTILE}], stream=out)
    emit([{"result": HOSTILE, HOSTILE: 1}], View(("result", HOSTILE)), stream=out)
    emit({"k": HOSTILE, "n": {HOSTILE: HOSTILE}}, stream=out)
    show_explanation([["a: table", HOSTILE], [f"{HOSTILE}: OFFLINE", HOSTILE], ["statement", HOSTILE]], out)
    TerminalProgress(out).say(f"error: {HOSTILE}")
    emit(*difference_table([{"change": "added", "after": {HOSTILE: HOSTILE}}], [], {}), stream=out)
    assert not set(out.getvalue()) & set("\x9b\x1b\x07\u202e\u2066\u200f\x85\u2028")


def test_markup_and_emoji_codes_are_text() -> None:
    assert shown([{"k": "[bold]x[/] :smile:"}])[2] == "[bold]x[/] :smile:"


# Values


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("rows", 196443, "196,443"),
        ("rows", None, ""),
        ("partition", 196443, "196443"),
        ("start_offset", 196443, "196443"),
        ("created_at", "2026-11-25T04:44:15.732+00:00", "2026-11-25T04:44:15Z"),
        ("created_at", "2026-11-25T05:44:15+01:00", "2026-11-25T04:44:15Z"),
        ("start", "2026-11-25T05:39:39.213Z", "2026-11-25T05:39:39.213Z"),
        ("end", "2026-11-25T05:39:39.213400Z", "2026-11-25T05:39:39.213400Z"),
        ("boundary", "any time", "any time"),
        ("halves", ["REALTIME", "OFFLINE"], "REALTIME, OFFLINE"),
    ],
)
def test_values(name: str, value: object, text: str) -> None:
    assert readable(value, kind_of(name)) == text


# Differences


def test_a_difference_names_keys_and_changed_columns_only() -> None:
    before = {"id": 7, "fare": "763.000000000000000000", "city": "x", "note": None, "change": 1}
    after = {**before, "fare": "7.630000000000000000", "note": "by hand", "change": 2}
    types = {"fare": "BIG_DECIMAL", "id": "LONG"}
    samples = [
        {"change": "changed", "before": before, "after": after},
        {"change": "removed", "before": before, "after": None},
    ]
    rows, view = difference_table(samples, ["id"], types)
    assert view.columns == ("change", "id", "difference") and view.kinds == {"difference": CellKind.PROSE}
    assert [row["difference"] for row in rows] == [
        "fare 763 -> 7.63, note NULL -> by hand, change 1 -> 2",
        "fare 763, city x, change 1",
    ]


def test_long_texts_are_shown_around_their_difference() -> None:
    old, new = "a" * 100 + "b" + "c" * 100, "a" * 100 + "X"
    rows, _ = difference_table([{"change": "changed", "before": {"t": old}, "after": {"t": new}}], [], {})
    assert rows[0]["difference"] == f"t ...{'a' * 12}b{'c' * 47}... -> ...{'a' * 12}X"


def test_decimals_that_are_no_numbers_stay() -> None:
    rows, _ = difference_table([{"change": "added", "before": None, "after": {"d": "1E+3", "e": "?"}}], [],
                               {"d": "BIG_DECIMAL", "e": "BIG_DECIMAL"})  # fmt: skip
    assert rows[0]["difference"] == "d 1000, e ?"


# Explanations


def test_an_explanation_is_a_tree_and_sql_has_lines() -> None:
    out = Terminal()
    lines = [
        ["revision", "r"],
        ["o: table", "orders"],
        ["o: relation", "SELECT a FROM b WHERE c"],
        ["statement", "no SQL ("],
    ]
    show_explanation(lines, out)
    assert out.getvalue().splitlines() == [
        "query",
        "├── revision  r",
        "├── o (table orders)",
        "│   └── relation",
        "│       └── SELECT",
        "│             a",
        "│           FROM b",
        "│           WHERE",
        "│             c",
        "└── statement  no SQL (",
    ]


# Colours and messages


def test_colour_goes_with_a_word_and_no_color_takes_every_style(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"id": "a", "state": "FAILED"}]
    assert "\x1b" not in "".join(shown(rows, View(("id", "state"))))
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b[31mFAILED\x1b[0m" in shown(rows, View(("id", "state")))[2]
    out = Terminal()
    TerminalProgress(out).say("error: no")
    assert out.getvalue() == "\x1b[1;31merror\x1b[0m: no\n"


def test_a_dumb_terminal_has_no_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert shown([{"id": "a", "state": "FAILED"}], View(("id", "state")))[2] == "a   FAILED"


def test_messages_wrap_between_words_and_commands_stay_whole() -> None:
    out = Terminal()
    command = f"hint: hybrid query --home {'x' * 60}"
    TerminalProgress(out).say(f"{LONG.strip()}\n{command}")
    lines = out.getvalue().splitlines()
    assert lines[-1] == command and max(map(len, lines[:-1])) <= 60 and lines[0].endswith("word")


# Watching


def test_watch_shows_the_page_again_until_ctrl_c(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 2:
            raise KeyboardInterrupt

    out = Terminal()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr(time, "sleep", sleep)
    row = {"table": "orders", "state": "OK", "override": None}
    monkeypatch.setattr(status, "ask", lambda *_: {"home": "/h", "tables": [row], "healthy": False})
    assert run(["status", "--watch", "0.5"]) == FINDINGS
    assert waits == [0.5, 0.5] and out.getvalue().count("orders") == 2


def test_watch_needs_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["status", "--watch"]) == 2
    assert "--watch shows a page on a terminal." in capsys.readouterr().err
