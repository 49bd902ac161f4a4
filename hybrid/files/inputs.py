"""The input files of a job: which there are, what they are known by afterwards, and how workers share them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from hybrid.errors import DataError, suggestion
from hybrid.replace.jsonfile import json_shape
from hybrid.replace.parquetfile import row_groups
from hybrid.replace.records import Problem, Shape, Slice
from hybrid.spec.job_spec import JobSpec

# Files of JSON lines are cut after this many bytes, at the next line end, so that several workers share a large one.
SLICE_BYTES = 32 * 1024 * 1024


class DataFormat(StrEnum):
    """The formats a job reads."""

    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


@dataclass(frozen=True)
class InputFile:
    """A file as it was when the job read it. `slices` are the pieces that workers read, in order."""

    path: Path
    bytes: int
    modified_ns: int
    sha256: str
    slices: tuple[Slice, ...] = field(repr=False)

    def to_json(self) -> dict[str, object]:
        """What lineage keeps of it."""
        return {"path": str(self.path), "bytes": self.bytes, "sha256": self.sha256}

    def check_unchanged(self) -> None:
        """DataError when the file is no longer the one whose sha256 was taken."""
        try:
            now = self.path.stat()
        except OSError as error:
            raise DataError(f"{self.path} was removed while it was read. Nothing was changed.") from error
        if (now.st_size, now.st_mtime_ns) != (self.bytes, self.modified_ns):
            raise DataError(f"{self.path} was written to while it was read. Nothing was changed.")


def list_inputs(job: JobSpec) -> list[Path]:
    """The job's files, sorted by path. DataError naming folder, pattern and near misses when there is none.

    Markers and checksums that writers leave beside their data (`_SUCCESS`, `.part-0.crc`) count only when a pattern
    names them.
    """
    found = [path for path in job.input_files() if job.include or not path.name.startswith((".", "_"))]
    if not found:
        raise _nothing_found(job)
    return found


def inspect(path: Path, data_format: DataFormat) -> InputFile:
    """Reads a file once: its sha256, and where it can be cut. DataError when it cannot be read as its format says."""
    try:
        before = path.stat()
        if before.st_size == 0 and data_format is not DataFormat.JSON:
            raise DataError(f"{path} is empty (0 bytes), which is no {data_format.value} file.")
        sha256, slices = _cut(path, data_format)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from error
    except Problem as problem:
        raise DataError(f"{path}{problem.at}: {problem.reason}") from problem
    return InputFile(path, before.st_size, before.st_mtime_ns, sha256, tuple(slices))


def _cut(path: Path, data_format: DataFormat) -> tuple[str, Sequence[Slice]]:
    if data_format is DataFormat.PARQUET:
        return _sha256(path), row_groups(path)
    if data_format is DataFormat.CSV:
        return _sha256(path), [Slice(path, Shape.CSV)]
    shape = json_shape(path)
    if shape is not Shape.JSON_LINES:
        return _sha256(path), [Slice(path, shape)]
    return _lines(path)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lines(path: Path) -> tuple[str, Sequence[Slice]]:
    digest, slices, start, line = hashlib.sha256(), [], 0, 0
    with path.open("rb") as file:
        while piece := file.read(SLICE_BYTES):
            piece += file.readline()
            digest.update(piece)
            slices.append(Slice(path, Shape.JSON_LINES, line, start, len(piece)))
            start, line = start + len(piece), line + piece.count(b"\n")
    return digest.hexdigest(), slices


def _nothing_found(job: JobSpec) -> DataError:
    there = sorted(path.name for path in job.input_dir.rglob("*") if path.is_file())
    if not there:
        return DataError(f"{job.source}: the input folder '{job.input_dir}' holds no files.", hint="--input DIR")
    wanted = job.include or "any file"
    left_out = f" without '{job.exclude}'" if job.exclude else ""
    near = suggestion(wanted.rsplit("/", 1)[-1], there)
    shown = ", ".join(f"'{name}'" for name in there[:3]) + (f" and {len(there) - 3} more" if len(there) > 3 else "")
    return DataError(
        f"{job.source}: no file in '{job.input_dir}' matches '{wanted}'{left_out}; there are {shown}.{near}",
        hint="Change includeFileNamePattern, or give another folder: --input DIR",
    )
