r"""Splits lines of CSV into cells, by the rules of the lexer of Apache Commons CSV, which Pinot uses.

Python's own `csv` module does not report which cells were quoted, and spaces count only in these. It also reads `\n`
as `n` where a backslash is the escape character. Lines without a quote or an escape, nearly all, are simply split.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from hybrid.schema.problem import Problem

_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}
_BLANKS = " \t"


class QuotedEmpty(str):
    """An empty quoted cell, which is an empty text; an empty unquoted cell is a null."""

    __slots__ = ()


EMPTY_TEXT = QuotedEmpty()


@dataclass(frozen=True)
class Dialect:
    """The syntax of cells. `trim`: blanks around a cell are removed, except within quotes.

    `controls`: an escape and `n` are a line end, as in Commons CSV; else an escaped character is itself.
    """

    delimiter: str = ","
    quote: str | None = '"'
    escape: str | None = None
    comment: str | None = None
    trim: bool = True
    skips_blank_lines: bool = True
    controls: bool = True

    @cached_property
    def blanks(self) -> str:
        """The blank characters, except the delimiter."""
        return _BLANKS.replace(self.delimiter, "")

    @cached_property
    def leading(self) -> re.Pattern[str]:
        """Matches blanks before a quote."""
        return re.compile(f"[{self.blanks}]*" if self.trim and self.blanks else "")

    @cached_property
    def ends_cell(self) -> re.Pattern[str]:
        """Matches the end of an unquoted cell, or an escape."""
        return re.compile("|".join(re.escape(char) for char in (self.delimiter, self.escape) if char))

    @cached_property
    def ends_quote(self) -> re.Pattern[str]:
        """Matches the end of a quoted cell, or an escape."""
        return re.compile("|".join(re.escape(char) for char in (self.quote, self.escape) if char))


def rows_of(lines: Iterator[str], dialect: Dialect, before: int = 0) -> Iterator[tuple[int, list[str]]]:
    """(number of its first line from 1, cells) of each row; a quoted cell may span lines. Problem at a misplaced quote.

    `before` is the number of lines before the first one.
    """
    reader = _Rows(lines, dialect, before)
    for line in reader.lines:
        text = line.rstrip("\r\n")
        if dialect.comment and text.startswith(dialect.comment):
            continue
        if not text.strip(dialect.blanks) and dialect.skips_blank_lines:
            continue
        yield reader.number, reader.cells(line)


class _Rows:
    """The lines of a file, and the cells of rows.

    `number` is that of the last line read, from 1, and `end` the offset of its line end.
    """

    def __init__(self, lines: Iterator[str], dialect: Dialect, before: int) -> None:
        self.dialect, self.number, self.end = dialect, before, 0
        self.lines = self._counted(lines)

    def cells(self, line: str) -> list[str]:
        """The cells of the row that begins with `line`."""
        dialect = self.dialect
        plain = not (dialect.quote and dialect.quote in line) and not (dialect.escape and dialect.escape in line)
        if not plain:
            return list(self._lexed(line))
        text = line.rstrip("\r\n")
        if "\r" in text:
            raise self._amiss(self.number, "a line ends in a carriage return alone; write \\n or \\r\\n")
        cells = text.split(dialect.delimiter)
        return [cell.strip(dialect.blanks) for cell in cells] if dialect.trim else cells

    def _lexed(self, line: str) -> Iterator[str]:
        """The cells of a row with quotes or escapes."""
        dialect, position, ended = self.dialect, 0, False
        while not ended:
            match = dialect.leading.match(line, position)
            start = match.end() if match else position
            if dialect.quote and line.startswith(dialect.quote, start):
                cell, line, position = self._quoted(line, start + 1)
                cell = cell or EMPTY_TEXT
            else:
                cell, line, position = self._bare(line, position)
            ended = not line.startswith(dialect.delimiter, position)
            position += 1
            yield cell

    def _bare(self, line: str, position: int) -> tuple[str, str, int]:
        """An unquoted cell, the line on which it ends, and the offset of its end."""
        parts: list[str] = []
        while True:
            match = self.dialect.ends_cell.search(line, position)
            if match is None or match[0] == self.dialect.delimiter:
                stop = self.end if match is None else match.start()
                text = "".join([*parts, line[position:stop]])
                return (text.strip(self.dialect.blanks) if self.dialect.trim else text), line, stop
            parts += [line[position : match.start()], self._escaped(line, match.end())]
            line, position = self._after_escape(line, match.end())

    def _quoted(self, line: str, position: int) -> tuple[str, str, int]:
        """A quoted cell from after its quote, the line on which it ends, and the offset of its end."""
        parts, opened, quote = [], self.number, self.dialect.quote or ""
        while True:
            match = self.dialect.ends_quote.search(line, position)
            if match is None:
                parts.append(line[position:])
                line, position = self._next(opened), 0
            elif match[0] == self.dialect.escape:
                parts += [line[position : match.start()], self._escaped(line, match.end())]
                line, position = self._after_escape(line, match.end())
            elif line.startswith(quote, match.end()):
                parts += [line[position : match.start()], quote]
                position = match.end() + 1
            else:
                parts.append(line[position : match.start()])
                return "".join(parts), line, self._behind_quote(line, match.end())

    def _behind_quote(self, line: str, position: int) -> int:
        """The offset of the delimiter or the end of the line after a quoted cell; Problem for any other character."""
        while position < self.end and line[position] in self.dialect.blanks:
            position += 1
        if position < self.end and not line.startswith(self.dialect.delimiter, position):
            text = line[position : min(position + 20, self.end)]
            raise self._amiss(self.number, f"'{text}' follows the end of a quoted cell")
        return position

    def _escaped(self, line: str, position: int) -> str:
        """The meaning of the character after an escape. An escape without effect is kept."""
        char, dialect = line[position : position + 1], self.dialect
        if char in {dialect.delimiter, dialect.escape, dialect.quote, dialect.comment, "\r", "\n"}:
            return "\n" if char in "\r\n" else char
        if not dialect.controls:
            return char
        return _CONTROLS.get(char, f"{dialect.escape}{char}")

    def _after_escape(self, line: str, position: int) -> tuple[str, int]:
        """The line and offset after an escaped character; the cell continues on the next line after a line end."""
        return (self._next(self.number), 0) if line[position : position + 1] in {"\r", "\n"} else (line, position + 1)

    def _next(self, opened: int) -> str:
        line = next(self.lines, None)
        if line is None:
            raise self._amiss(opened, "a cell that begins here has no end")
        return line

    def _counted(self, lines: Iterator[str]) -> Iterator[str]:
        for line in lines:
            self.number += 1
            self.end = len(
                line.rstrip("\r\n")
            )  # computed once, because a hostile line may have a hundred thousand cells
            yield line

    @staticmethod
    def _amiss(line: int, reason: str) -> Problem:
        return Problem(line, f", line {line}", f"is not CSV: {reason}")
