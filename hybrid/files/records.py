"""Records of input files, each with its place: the output of the format readers, which workers convert.

Spark's own readers turn bad bytes into replacement characters, drop cells beyond the header and do not know line
numbers. A correction needs the exact place of the first bad row, so Spark's workers read the files with these readers.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, partial
from pathlib import Path
from typing import IO, NamedTuple, cast

from hybrid.files.limits import DEFAULT_LIMITS, FileLimits
from hybrid.schema.problem import Problem

_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_BLOCK = 1024 * 1024
_NOT_TEXT = {
    b"\xff\xfe": "is UTF-16; only UTF-8 is read. Convert it first",
    b"\xfe\xff": "is UTF-16; only UTF-8 is read. Convert it first",
    b"PAR1": "is a Parquet file. Say dataFormat: 'parquet' in recordReaderSpec",
    b"ORC": "is an ORC file. Say dataFormat: 'orc' in recordReaderSpec",
    b"Obj\x01": "is an Avro file. Say dataFormat: 'avro' in recordReaderSpec",
}


class Record(NamedTuple):
    """One row of a file as written there. `position` counts from 0 and increases with the row's place."""

    position: int
    at: str
    values: Mapping[str, object]


# Receives the problem of one row, behind which the reader continues, or raises it.
Wrong = Callable[[Problem], None]


def raise_problem(problem: Problem) -> None:
    """Ends reading at the first wrong row."""
    raise problem


class Shape(StrEnum):
    """The layout of rows in a file. JSON_WHOLE is one array, or objects that span lines."""

    JSON_LINES = "lines"
    JSON_WHOLE = "whole"
    CSV = "csv"
    PARQUET = "parquet"
    AVRO = "avro"
    ORC = "orc"


@dataclass(frozen=True)
class Slice:
    """A piece of a file that one worker reads. `first` is its first row or line, from 0.

    `start` and `bytes` bound JSON lines, and CSV if `bytes` is given. In a Parquet file `start` is the row group, in an
    ORC file the stripe. Other files are read whole.
    """

    path: Path
    shape: Shape
    first: int = 0
    start: int = 0
    bytes: int = 0


@cache
def arrow_errors() -> tuple[type[Exception], ...]:
    """Exceptions of Arrow's readers for damaged bytes: its own, Python's, and those of the libraries below it."""
    from pyarrow.lib import ArrowException

    return ArrowException, OSError, ValueError, LookupError, TypeError, RuntimeError, MemoryError


def at_line(line: int) -> str:
    """The place of a line for messages; `line` counts from 0, the text from 1."""
    return f", line {line + 1}"


def is_gzip(path: Path) -> bool:
    """Whether a file is compressed with gzip, by its first bytes, as in Pinot."""
    with path.open("rb") as file:
        return file.read(len(_GZIP)) == _GZIP


def open_plain(path: Path, limits: FileLimits = DEFAULT_LIMITS) -> IO[bytes]:
    """A file for reading, decompressed if it is gzip; then Problem when it unpacks to far too much."""
    return cast("IO[bytes]", _Unpacked(path, limits)) if is_gzip(path) else path.open("rb")


class _Unpacked(gzip.GzipFile):
    """A gzip file that refuses to unpack to far more than its size (a zip bomb)."""

    def __init__(self, path: Path, limits: FileLimits) -> None:
        super().__init__(path, "rb")
        self._limits = limits
        self._packed_bytes, self._unlooked = path.stat().st_size, 0

    def read(self, size: int | None = -1) -> bytes:
        """At most `size` bytes, and never more at once than the maximal length of a line."""
        bytes_max = self._limits.line_bytes_max
        if size is None or size < 0 or size > bytes_max:
            piece = super().read(bytes_max + 1)
            if len(piece) > bytes_max:
                raise Problem(0, "", f"holds a piece of more than {bytes_max} bytes, which is not read at once")
        else:
            piece = super().read(size)
        self._check_ratio()
        return piece

    def readline(self, size: int | None = -1) -> bytes:
        """A line, or its first `size` bytes."""
        line = super().readline(-1 if size is None else size)
        self._unlooked += len(line)
        if self._unlooked > _BLOCK:
            self._unlooked = 0
            self._check_ratio()
        return line

    def _check_ratio(self) -> None:
        if self._limits.is_bomb(self.tell(), self._packed_bytes):
            ratio = self._limits.ratio_max
            reason = f"unpacks to more than {ratio} times its size, which is not read. Send it unpacked if it is meant"
            raise Problem(0, "", reason)


def text_lines(
    path: Path, start: int = 0, first_line: int = 0, limits: FileLimits = DEFAULT_LIMITS
) -> Iterator[tuple[str, int]]:
    """(line, its bytes) from byte `start` on, where line `first_line` begins. Problem when it is not UTF-8."""
    line, bytes_max = first_line, limits.line_bytes_max
    try:
        with open_plain(path, limits) as file:
            file.seek(start)
            for line, raw in enumerate(iter(partial(file.readline, bytes_max + 1), b""), first_line):
                if len(raw) > bytes_max:
                    raise Problem(line, at_line(line), f"is longer than {bytes_max} bytes")
                if line == 0:
                    check_text(raw)
                yield _utf8(raw.removeprefix(_BOM) if line == 0 else raw, line), len(raw)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        reason = f"the gzip data cannot be read from here on, is the file damaged or cut off? {error}"
        raise Problem(line + 1, f", after line {line}", reason) from error


def check_text(head: bytes) -> None:
    """Problem when the first bytes of a file identify another format than UTF-8 text."""
    for magic, reason in _NOT_TEXT.items():
        if head.startswith(magic):
            raise Problem(0, "", reason)


def _utf8(raw: bytes, line: int) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        place = f"byte 0x{raw[error.start]:02x} at place {error.start + 1} of the line"
        raise Problem(line, at_line(line), f"is not UTF-8: {place}. Convert the file to UTF-8 first") from error
