"""Output of commands: results on stdout as table, JSON, JSON lines, CSV, Markdown; messages, progress on stderr.

On a terminal `hybrid.cli.terminal` lays tables and objects out for its width. It is imported only there.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from hybrid.cli.cells import MESSAGE, Row, View, csv_cell, printable, text
from hybrid.runtime.json_values import json_value
from hybrid.runtime.text_table import is_numeric, padded, table_lines, width

FORMATS = ("table", "json", "jsonl", "csv", "markdown")
FILE_FORMATS = (*FORMATS, "parquet", "arrow")  # of a query, whose rows are written as they come

_LINE_S = 5.0  # off a terminal: at most one progress line in so many seconds
_REDRAW_S = 0.1
_BAR_CHARS = 24


def emit(
    data: Row | Sequence[Row],
    columns: View | Sequence[str] | None = None,
    fmt: str = "table",
    stream: TextIO | None = None,
    *,
    wide: bool = False,
) -> None:
    """Print a list of rows, or one object, as `fmt`. `columns` sets names and order; default: the first row's.

    A table fits the width of a terminal, unless it is asked for `wide`; elsewhere it is neither wrapped nor shortened.
    JSON is one array for a list and one object for an object, and keeps keys that are not among `columns`.
    """
    out = stream or sys.stdout
    rows = [data] if isinstance(data, Mapping) else list(data)
    view = columns if isinstance(columns, View) else View(_names(columns, rows), kinds={})
    names = view.columns
    if fmt == "json":
        print(json.dumps(json_value(data if isinstance(data, Mapping) else rows), ensure_ascii=False), file=out)
    elif fmt == "jsonl":
        for row in rows:
            print(json.dumps(json_value(row), ensure_ascii=False), file=out)
    elif fmt == "csv":
        print(",".join(csv_cell(name) for name in names), file=out)
        for row in rows:
            print(",".join(csv_cell(row.get(name)) for name in names), file=out)
    elif fmt == "markdown":
        _print_markdown(data, rows, names, out)
    elif out.isatty():
        from hybrid.cli.terminal.show import show_object, show_table

        if isinstance(data, Mapping):
            show_object(data, names, out, wide=wide)
        else:
            show_table(rows, view, out, wide=wide)
    elif isinstance(data, Mapping):
        _print_object(data, names, out)
    else:
        _print_table(rows, names, out)
    out.flush()


def _names(columns: Sequence[str] | None, rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple(columns) if columns is not None else tuple(rows[0]) if rows else ()


def _print_markdown(data: Row | Sequence[Row], rows: Sequence[Row], names: Sequence[str], out: TextIO) -> None:
    """A list is a table of its columns, an object a table of its names and values."""
    from hybrid.files.results.markdown_cells import markdown_cell, markdown_head, markdown_row

    if isinstance(data, Mapping):
        rows = [{"name": name, "value": data.get(name)} for name in names]
        names = ("name", "value")
    if not names:
        return
    out.write(markdown_head(names, [is_numeric([row.get(name) for row in rows]) for name in names]))
    for row in rows:
        out.write(markdown_row([markdown_cell(text(row.get(name))) for name in names]))


def _print_object(row: Row, names: Sequence[str], out: TextIO) -> None:
    wide = max((width(name) for name in names), default=0)
    for name in names:
        print(f"{padded(name, wide)}  {printable(text(row.get(name)))}".rstrip(), file=out)


def _print_table(rows: list[Row], names: Sequence[str], out: TextIO) -> None:
    for line in table_lines(names, [[row.get(name) for name in names] for row in rows]):
        print(line, file=out)


class TerminalProgress:
    """Progress on stderr: a bar on a terminal; elsewhere milestone lines, and few of them."""

    def __init__(self, stream: TextIO | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream or sys.stderr
        self._clock = clock
        self._drawn = False
        self._label = ""
        self._shown_at = clock()

    def say(self, message: str) -> None:
        """Print a milestone or a warning on a line of its own."""
        self._erase()
        safe = message.translate(MESSAGE)
        if self._stream.isatty():
            from hybrid.cli.terminal.show import show_message

            show_message(safe, self._stream)
        else:
            print(safe, file=self._stream, flush=True)

    def step(self, label: str, done: int, total: int | None) -> None:
        """`done` of `total` units of `label`; a stretch ends when `done == total`."""
        ended = done == total
        pause_s = _REDRAW_S if self._stream.isatty() else _LINE_S
        if label == self._label and not ended and self._clock() - self._shown_at < pause_s:
            return
        if label != self._label and not self._stream.isatty() and not ended:
            self._label, self._shown_at = label, self._clock()  # short stretches get one line, at their end
            return
        self._label, self._shown_at = label, self._clock()
        if self._stream.isatty() and not ended:
            self._draw(f"{label} {_bar(done, total)}")
        else:
            self.say(f"{label}: {done}" if ended or total is None else f"{label}: {done} of {total}")

    def _draw(self, line: str) -> None:
        width = shutil.get_terminal_size().columns
        print(f"\r\x1b[K{printable(line)[: width - 1]}", end="", file=self._stream, flush=True)
        self._drawn = True

    def _erase(self) -> None:
        if self._drawn:
            print("\r\x1b[K", end="", file=self._stream)
            self._drawn = False


def _bar(done: int, total: int | None) -> str:
    if not total:
        return str(done)
    full = _BAR_CHARS * done // total
    return f"[{'#' * full}{'.' * (_BAR_CHARS - full)}] {done}/{total}"
