"""Which segments a job writes and which it replaces: names by the job spec, checked against what the half holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from hybrid.errors import ConflictError, SpecError
from hybrid.lake.log import DataFile
from hybrid.replace.stage import Staged, StagedFile
from hybrid.spec.job_spec import JobSpec
from hybrid.spec.table_config import TableSpec
from hybrid.table import columns
from hybrid.table.names import is_segment_name, time_text, time_value


@dataclass(frozen=True)
class Target:
    """A segment that the job writes: its rows come from the files of these numbers; first and last time in ms."""

    name: str
    files: tuple[int, ...]
    rows: int
    low: int | None
    high: int | None


def check_fixed_name(job: JobSpec) -> None:
    """SpecError when the fixed name that the job spec gives cannot be a segment's name."""
    if job.segment_name_type == "fixed" and not is_segment_name(job.segment_name or ""):
        raise _bad_name(job, "segmentNameGeneratorSpec.configs.segment.name", job.segment_name or "")


def targets_of(spec: TableSpec, job: JobSpec, staged: Staged) -> tuple[Target, ...]:
    """The segments of a job: one of the fixed name, or one for each file that holds rows."""
    if job.segment_name_type == "fixed":
        assert job.segment_name is not None
        return (_fixed(job.segment_name, staged.files),)
    filled = [(number, file) for number, file in enumerate(staged.files) if file.rows or file.deletes]
    targets = []
    for sequence, (number, file) in enumerate(filled):
        name = _simple_name(spec, job, file, sequence)
        if not is_segment_name(name):
            raise _bad_name(job, "segmentNameGeneratorSpec.configs", name)
        targets.append(Target(name, (number,), file.rows + file.deletes, file.low, file.high))
    return tuple(targets)


def replaced_names(targets: Sequence[Target], existing: Iterable[DataFile]) -> tuple[str, ...]:
    """Names that the half holds already, which the job therefore replaces."""
    held = {file.segment for file in existing}
    return tuple(target.name for target in targets if target.name in held)


def refuse_overlap(targets: Sequence[Target], existing: Sequence[DataFile]) -> None:
    """ConflictError when a new name's times overlap a segment that stays: a misspelt name would double its rows."""
    replaced = set(replaced_names(targets, existing))
    for target in targets:
        if target.name in replaced or target.low is None or target.high is None:
            continue
        beside = sorted(
            {
                file.segment
                for file in existing
                if file.segment not in replaced and _overlaps(file, target.low, target.high)
            }
        )
        if beside:
            raise ConflictError(
                f"Segment '{target.name}' does not exist, and its times [{target.low}, {target.high}] overlap "
                f"{len(beside)} segment{'s' * (len(beside) > 1)}, e.g. '{beside[0]}'. Nothing was changed.",
                hint="To correct a segment, name it: --var segmentName=... To add rows beside them: --append",
            )


def _overlaps(file: DataFile, low: int, high: int) -> bool:
    first, last = file.low.get(columns.TIME), file.high.get(columns.TIME)
    return isinstance(first, int) and isinstance(last, int) and first <= high and low <= last


def _fixed(name: str, files: Sequence[StagedFile]) -> Target:
    low = min((file.low for file in files if file.low is not None), default=None)
    high = max((file.high for file in files if file.high is not None), default=None)
    rows = sum(file.rows + file.deletes for file in files)
    return Target(name, tuple(range(len(files))), rows, low, high)


def _simple_name(spec: TableSpec, job: JobSpec, file: StagedFile, sequence: int) -> str:
    """`[prefix_]table_min_max[_postfix]_sequence`."""
    times = [time_text(time_value(spec, time)) for time in (file.low, file.high) if time is not None]
    parts = [job.name_prefix, spec.name, *times, job.name_postfix, str(sequence)]
    return "_".join(part for part in parts if part)


def _bad_name(job: JobSpec, path: str, name: str) -> SpecError:
    return SpecError.at(
        job.source, path, f"'{name}' cannot be a segment's name: letters, digits, '_', '-' and '.' only."
    )
