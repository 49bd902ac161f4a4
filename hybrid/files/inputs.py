"""Input files: their identity for lineage, and their slices for workers."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from hybrid.errors import DataError
from hybrid.files.jsonfile import json_shape
from hybrid.files.limits import DEFAULT_LIMITS, FileLimits
from hybrid.files.orcfile import stripes
from hybrid.files.parquetfile import row_groups
from hybrid.files.records import Shape, Slice, at_line, is_gzip
from hybrid.schema.problem import Problem


class DataFormat(StrEnum):
    """The supported formats."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    AVRO = "avro"
    ORC = "orc"


# Formats in which an empty file is valid and has no rows.
_MAY_BE_EMPTY = (DataFormat.JSON, DataFormat.CSV)


@dataclass(frozen=True)
class InputFile:
    """A file at the time of reading. `slices` are the pieces that workers read, in order.

    `real` is its resolved path, after symbolic links.
    """

    path: Path
    bytes: int
    modified_ns: int
    sha256: str
    inode: int
    slices: tuple[Slice, ...] = field(repr=False)
    real: str = field(default="", repr=False)

    def to_json(self) -> dict[str, object]:
        """The file's record in lineage."""
        return {"path": str(self.path), "bytes": self.bytes, "sha256": self.sha256}

    def check_unchanged(self) -> None:
        """DataError when the file is no longer the one whose sha256 was computed."""
        try:
            now = self.path.stat()
            real = os.path.realpath(self.path)
        except OSError as error:
            raise DataError(f"{self.path} was removed while it was read. Nothing was changed.") from error
        if real != (self.real or real):
            raise DataError(f"{self.path} was another file while it was read. Nothing was changed.")
        if (now.st_size, now.st_mtime_ns) != (self.bytes, self.modified_ns):
            raise DataError(f"{self.path} was written to while it was read. Nothing was changed.")


def inspect(path: Path, data_format: DataFormat, limits: FileLimits = DEFAULT_LIMITS) -> InputFile:
    """Read a file once, for its sha256 and slices. DataError when it cannot be read in its format."""
    try:
        before, real = path.stat(), os.path.realpath(path)
        if before.st_size == 0 and data_format not in _MAY_BE_EMPTY:
            raise DataError(f"{path} is empty (0 bytes), which is no {data_format.value} file.")
        sha256, slices = _cut(path, data_format, limits)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    except Problem as problem:
        raise DataError(f"{path}{problem.at}: {problem.reason}") from problem
    return InputFile(path, before.st_size, before.st_mtime_ns, sha256, before.st_ino, tuple(slices), real)


def _cut(path: Path, data_format: DataFormat, limits: FileLimits) -> tuple[str, Sequence[Slice]]:
    if data_format is DataFormat.PARQUET:
        return _sha256(path), row_groups(path, limits)
    if data_format is DataFormat.CSV:
        return _sha256(path), [Slice(path, Shape.CSV)] if path.stat().st_size else []
    if data_format is DataFormat.AVRO:
        return _sha256(path), [Slice(path, Shape.AVRO)]
    if data_format is DataFormat.ORC:
        return _sha256(path), stripes(path, limits)
    shape = json_shape(path, limits)
    if shape is not Shape.JSON_LINES:
        return _sha256(path), [Slice(path, shape)]
    if is_gzip(path):  # gzip cannot be entered in the middle
        return _sha256(path), [Slice(path, shape, bytes=sys.maxsize)]
    return _lines(path, limits)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lines(path: Path, limits: FileLimits) -> tuple[str, Sequence[Slice]]:
    digest, slices, start, line = hashlib.sha256(), [], 0, 0
    line_bytes_max = limits.line_bytes_max
    with path.open("rb") as file:
        while piece := file.read(limits.slice_bytes):
            rest = file.readline(line_bytes_max + 1)
            if len(rest) > line_bytes_max:
                at = line + piece.count(b"\n")
                raise Problem(at, at_line(at), f"is longer than {line_bytes_max} bytes")
            piece += rest
            digest.update(piece)
            slices.append(Slice(path, Shape.JSON_LINES, line, start, len(piece)))
            start, line = start + len(piece), line + piece.count(b"\n")
    return digest.hexdigest(), slices
