"""Which files a followed `file_input` reads next, in rounds, and how this is stored with the rows.

A round is all that exists at one moment and was not read before: new files and, for formats with a record per line,
lines appended to known files. One commit holds its rows and how far every file was read. So after a crash the next
round continues behind the committed rows. A file that is still being written fails a round, but damages no table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from hybrid.config import connectors as words
from hybrid.errors import DataError
from hybrid.files.inputs import DataFormat, InputFile, inspect
from hybrid.files.limits import DEFAULT_LIMITS, FileLimits
from hybrid.files.log_rotation import by_new_names
from hybrid.files.records import Shape, is_gzip
from hybrid.files.tailed_file import ReadUpTo, TailedFile, check_begins, is_as_known, tail_file

_SHAPES = {DataFormat.JSON: Shape.JSON_LINES, DataFormat.CSV: Shape.CSV}
FoundFile = InputFile | TailedFile


@dataclass(frozen=True)
class FileReading:
    """How files are read: by `lines`, as these are appended, or each as a whole.

    At most `files_max` are followed, because every commit of the half holds all of them.
    """

    data_format: DataFormat
    lines: bool
    files_max: int = 5000
    limits: FileLimits = DEFAULT_LIMITS

    @classmethod
    def of(cls, form: words.Format | None) -> FileReading:
        """By a connector's format: JSON arrays and Parquet are read as a whole."""
        if isinstance(form, words.ConnectorCsvFormat):
            return cls(DataFormat.CSV, lines=True)
        if isinstance(form, words.ParquetFormat):
            return cls(DataFormat.PARQUET, lines=False)
        return cls(DataFormat.JSON, lines=not (isinstance(form, words.JsonFormat) and form.array))

    def reads_lines(self, path: Path) -> bool:
        """Whether appended lines of the file are read. Compressed files cannot be entered in the middle."""
        return self.lines and not is_gzip(path)


@dataclass(frozen=True)
class Round:
    """What round `number` reads, and up to where every file is read afterwards (`known`, by path)."""

    number: int
    files: Sequence[FoundFile]
    known: Mapping[str, ReadUpTo]

    def to_json(self) -> dict[str, object]:
        """As a commit stores it."""
        return {"round": self.number, "known": {path: list(astuple(read)) for path, read in self.known.items()}}


def first_round(paths: Sequence[Path], reading: FileReading, bytes_max: int) -> Round:
    """The files at the beginning, maybe none: at least one if any exists, then as many as `bytes_max` allows."""
    return _round(0, paths, {}, reading, bytes_max)


def next_round(paths: Sequence[Path], reading: FileReading, bytes_max: int, pinned: Mapping[str, Any]) -> Round | None:
    """The additions since a round, maybe only renamed files; None without any.

    DataError when a file was truncated or changed, or when there are more files than can be followed.
    """
    before = {path: ReadUpTo(*values) for path, values in pinned["known"].items()}
    read_up_to = by_new_names(paths, before)
    following = _round(int(pinned["round"]) + 1, paths, read_up_to, reading, bytes_max)
    # A file's identity is kept while the file exists, because it may be renamed again.
    return following if following.files or read_up_to != before else None


def _round(
    number: int, paths: Sequence[Path], known: Mapping[str, ReadUpTo], reading: FileReading, bytes_max: int
) -> Round:
    files: list[FoundFile] = []
    after, remaining = dict(known), bytes_max
    for path in paths:
        file = _new(path, known.get(str(path)), reading)
        if file is None:
            continue
        remaining -= file.bytes
        if files and remaining < 0:
            break
        files.append(file)
        after[str(path)] = file.end if isinstance(file, TailedFile) else _whole(file)
    if len(after) > reading.files_max:
        raise DataError(
            f"{len(after)} files were found, and {reading.files_max} can be followed: each commit says which were "
            "read. Nothing more was loaded.",
            hint="Let an incremental flow read them (read_files_stream), which has no such limit.",
        )
    return Round(number, files, after)


def _new(path: Path, before: ReadUpTo | None, reading: FileReading) -> FoundFile | None:
    """The unread part of a file. An empty file has none yet."""
    try:
        now = path.stat()
        if before is not None and is_as_known(now, before):
            return None
        lines = reading.reads_lines(path)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}. Nothing more was loaded.") from error
    if before is None and now.st_size == 0:
        return None
    if lines:
        return tail_file(path, before or ReadUpTo(), _SHAPES[reading.data_format], reading.limits.slice_bytes)
    if before is None:
        return inspect(path, reading.data_format, reading.limits)
    check_begins(path, now, before)
    if now.st_size != before.bytes:
        raise DataError(
            f"{path} has grown since it was read, and files of its format are read as a whole. Nothing more was "
            "loaded.",
            hint="Put the old one back; write what is new to a file of its own, elsewhere, and rename it into place.",
        )
    return None


def _whole(file: InputFile) -> ReadUpTo:
    return ReadUpTo(file.bytes, 0, file.sha256, file.modified_ns, file.inode)
