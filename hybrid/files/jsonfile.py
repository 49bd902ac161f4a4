"""JSON files: one object per line, objects that span lines, or one array of objects."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from hybrid.files.limits import DEFAULT_LIMITS, FileLimits
from hybrid.files.records import (
    Record,
    Shape,
    Slice,
    Wrong,
    at_line,
    check_text,
    open_plain,
    raise_problem,
    text_lines,
)
from hybrid.schema.jsontext import parse_json
from hybrid.schema.problem import Problem

_HEAD_BYTES = 64 * 1024
_ANOTHER = re.compile(rb"\}[ \t]*\{")


def json_shape(path: Path, limits: FileLimits = DEFAULT_LIMITS) -> Shape:
    """The layout of objects in a file. Problem when it is not text."""
    head = _head(path, limits)
    check_text(head)
    if head.decode("utf-8-sig", errors="replace").lstrip()[:1] == "[":
        return Shape.JSON_WHOLE
    if _holds_two_values_on_a_line(head):
        return Shape.JSON_WHOLE
    try:
        first = list(islice((line for line, _ in text_lines(path, limits=limits) if line.strip()), 2))
    except Problem:  # bad bytes in the first lines: the worker reports them, with the line
        return Shape.JSON_LINES
    # If the second line is an object, a bad first line is a bad row. Otherwise an object spans lines.
    return Shape.JSON_LINES if not first or any(map(_is_object, first)) else Shape.JSON_WHOLE


def _holds_two_values_on_a_line(head: bytes) -> bool:
    """Whether a line of the head holds several JSON values. Only lines with `}{` are parsed."""
    for line in head.splitlines():
        if _ANOTHER.search(line):
            text = line.decode("utf-8-sig", errors="replace").strip()
            try:
                value, end = json.JSONDecoder().raw_decode(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(value, dict) and text[end:].lstrip().startswith("{"):
                return True
    return False


def _head(path: Path, limits: FileLimits) -> bytes:
    try:
        with open_plain(path, limits) as file:
            return file.read(_HEAD_BYTES)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Problem(0, "", f"the gzip data cannot be read, is the file damaged or cut off? {error}") from error


def read_lines(piece: Slice, limits: FileLimits = DEFAULT_LIMITS, wrong: Wrong = raise_problem) -> Iterator[Record]:
    """The objects of a slice of JSON lines; blank lines are skipped, and a line that is no object is `wrong`."""
    bytes_left = piece.bytes
    lines = text_lines(piece.path, piece.start, piece.first, limits)
    for line, (text, size) in enumerate(lines, piece.first):
        if bytes_left <= 0:
            return
        bytes_left -= size
        if text.strip():
            try:
                record = _record(text, line, line)
            except Problem as problem:
                wrong(problem)
            else:
                yield record


def read_whole(piece: Slice, limits: FileLimits = DEFAULT_LIMITS) -> Iterator[Record]:
    """The objects of a file that is one array, or a sequence of objects."""
    text = "".join(_bounded(text_lines(piece.path, limits=limits), limits.text_bytes_max))
    position = _skip_blank(text, 0)
    if text[position : position + 1] == "[":
        return _array(text, position + 1)
    return _sequence(text, position)


def _bounded(lines: Iterator[tuple[str, int]], bytes_max: int) -> Iterator[str]:
    """The lines of a text that is held in memory as a whole, up to a maximal size."""
    total = 0
    for line, size in lines:
        total += size
        if total > bytes_max:
            reason = f"is one JSON text of more than {bytes_max} bytes. Write one object per line"
            raise Problem(0, "", reason)
        yield line


def _sequence(text: str, position: int) -> Iterator[Record]:
    row, lines = 0, _Lines(text)
    while position < len(text):
        end = _end_of_value(text, position, row)
        yield _record(text[position:end], row, lines.at(position))
        row, position = row + 1, _skip_blank(text, end)


def _array(text: str, position: int) -> Iterator[Record]:
    row, lines = 0, _Lines(text)
    position = _skip_blank(text, position)
    while row > 0 or text[position : position + 1] != "]":
        end = _end_of_value(text, position, row)
        yield _record(text[position:end], row, lines.at(position))
        row, position = row + 1, _skip_blank(text, end)
        if text[position : position + 1] == "]":
            break
        if text[position : position + 1] != ",":
            raise Problem(row, at_line(lines.at(position)), "is not JSON: the array goes on without ',' or has no ']'")
        position = _skip_blank(text, position + 1)
    if text[position + 1 :].strip():
        raise Problem(row, at_line(lines.at(position)), "is not JSON: something follows the end of the array")


class _Lines:
    """The line number of increasing positions, from 0; counts every line end once."""

    def __init__(self, text: str) -> None:
        self._text, self._position, self._line = text, 0, 0

    def at(self, position: int) -> int:
        self._line += self._text.count("\n", self._position, position)
        self._position = position
        return self._line


def _skip_blank(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _end_of_value(text: str, position: int, row: int) -> int:
    try:
        return json.JSONDecoder().raw_decode(text, position)[1]
    except json.JSONDecodeError as error:
        raise Problem(row, at_line(error.lineno - 1), f"is not JSON: {error.msg} at place {error.colno}") from error
    except RecursionError as error:
        raise Problem(row, at_line(text.count("\n", 0, position)), "is not JSON: it nests too deep") from error


def _record(text: str, position: int, line: int) -> Record:
    """The object in `text`, parsed like the decoder parses messages."""
    try:
        value = parse_json(text)
    except json.JSONDecodeError as error:
        more = ": another value follows on the line; write each on its own" if error.msg == "Extra data" else ""
        raise Problem(position, at_line(line), f"is not JSON: {error.msg} at place {error.colno}{more}") from error
    except (ValueError, RecursionError) as error:
        raise Problem(position, at_line(line), f"is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise Problem(position, at_line(line), f"is not a JSON object: {text.strip()[:100]}")
    return Record(position, at_line(line), value)


def _is_object(line: str) -> bool:
    try:
        return isinstance(parse_json(line), dict)
    except (ValueError, RecursionError):
        return False
