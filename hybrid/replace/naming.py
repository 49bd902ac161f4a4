"""Names for the segments of a job's files, compatible with Pinot's name generators.

After SimpleSegmentNameGenerator, NormalizedDateSegmentNameGenerator and InputFileSegmentNameGenerator of Pinot's
segment SPI. Files with the same name form one segment; in Pinot the last file would replace the others.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from hybrid.config.batch_ingestion import IngestionType
from hybrid.config.job_names import INFERRED
from hybrid.config.job_spec import JobSpec
from hybrid.config.table_config import TableSpec
from hybrid.errors import SpecError
from hybrid.expression.user_patterns import compile_user_pattern
from hybrid.replace.stage import StagedFile
from hybrid.schema.timeformat import TimeKind
from hybrid.schema.types import DataType
from hybrid.table.names import exact_time, time_text

_TYPE = "segmentNameGeneratorSpec.type"


def segment_names(spec: TableSpec, job: JobSpec, files: Sequence[StagedFile]) -> dict[int, str]:
    """The segment name of each file that holds rows, by the file's number in the job.

    SpecError when names contain dates and the table has no time column.
    """
    sequences = _sequences([file.path for file in files], job.name_parts.global_sequence)
    return {
        number: _name(spec, job, file, sequences[number])
        for number, file in enumerate(files)
        if file.rows or file.deletes
    }


def naming_warnings(job: JobSpec, files: Sequence[StagedFile]) -> Iterator[str]:
    """One warning for files whose paths do not fit `file.path.pattern`."""
    unfit = [file.path for file in files if _of_pattern(job, file.path) is None] if job.name_parts.template else []
    if unfit:
        pattern = job.name_parts.file_pattern
        count = f"{len(unfit)} of {len(files)} files"
        example = _address(job, unfit[0])
        yield f"{count} do not match file.path.pattern '{pattern}' and are named by their paths, e.g. {example}."


def _sequences(paths: Sequence[Path], over_all: bool) -> list[int]:
    """Sequence numbers from 0, per folder or over all files. Files without rows count, as in Pinot."""
    seen: Counter[Path] = Counter()
    sequences = []
    for path in paths:
        folder = Path() if over_all else path.parent
        sequences.append(seen[folder])
        seen[folder] += 1
    return sequences


def _name(spec: TableSpec, job: JobSpec, file: StagedFile, sequence: int) -> str:
    kind = job.segment_name_type
    if kind == INFERRED:
        kind = "normalizedDate" if _has_dates_as_text(spec) else "simple"
    if kind == "inputFile":
        name = _of_pattern(job, file.path) or _of_path(job, file.path)
    else:
        name = "_".join(
            _dated(spec, job, file, sequence) if kind == "normalizedDate" else _simple(spec, job, file, sequence)
        )
    return f"{name}_{_uuid(name, file)}" if job.name_parts.with_uuid else name


def _simple(spec: TableSpec, job: JobSpec, file: StagedFile, sequence: int) -> list[str]:
    """Table, first and last time, postfix, sequence."""
    parts = job.name_parts
    times = () if parts.without_times else ((file.low, file.low_stored), (file.high, file.high_stored))
    texts = [time_text(exact_time(spec, time, stored)) for time, stored in times if time is not None]
    return [spec.name, *texts, *_given(parts.postfix), str(sequence)]


def _dated(spec: TableSpec, job: JobSpec, file: StagedFile, sequence: int) -> list[str]:
    """Prefix, first and last day (hour for hourly pushes), postfix, sequence. A refresh has no days."""
    parts = job.name_parts
    days: list[str] = []
    if spec.batch.type is IngestionType.APPEND:
        days = [_day(spec, job, time) for time in (file.low, file.high)]
    number = [] if parts.without_sequence else [str(sequence)]
    return [parts.prefix or spec.name, *days, *_given(parts.postfix), *number]


def _day(spec: TableSpec, job: JobSpec, time_ms: int | None) -> str:
    if time_ms is None:
        message = f"'normalizedDate' names segments by dates, and '{spec.name}' has no time column. Write 'simple'."
        raise SpecError.at(job.source, _TYPE, message)
    pattern = "-%m-%d-%H" if spec.batch.hourly else "-%m-%d"
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=time_ms)
    return f"{moment.year:04d}{moment.strftime(pattern)}"


def _of_pattern(job: JobSpec, path: Path) -> str | None:
    """The template, filled with the groups of the file's path; None when the path does not match the pattern."""
    match = compile_user_pattern(job.name_parts.file_pattern).fullmatch(_address(job, path))
    if match is None:
        return None
    name = job.name_parts.template
    for number, group in enumerate(match.groups(default=""), 1):
        name = name.replace(f"${{filePathPattern:\\{number}}}", group or "")
    return name


def _of_path(job: JobSpec, path: Path) -> str:
    return re.sub(r"[/.]", "_", _address(job, path).lstrip("/"))


def _address(job: JobSpec, path: Path) -> str:
    """What the pattern sees of a file, as in Pinot: its path, or `/key` of an object, without its bucket."""
    address = job.address_of(path)
    return "/" + address.removeprefix("s3://").partition("/")[2] if job.fetched_from else address


def _uuid(name: str, file: StagedFile) -> uuid.UUID:
    """A UUID derived from the file's content, so that the same job gives the same name again."""
    return uuid.uuid5(uuid.NAMESPACE_OID, f"{name}/{file.sha256}")


def _given(text: str | None) -> list[str]:
    return [text] if text else []


def _has_dates_as_text(spec: TableSpec) -> bool:
    field = spec.time_field
    form = field.time_format if field else None
    return form is not None and form.kind is TimeKind.PATTERN and form.data_type is DataType.STRING
