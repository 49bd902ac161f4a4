"""The segments that a job writes and replaces: named by the job spec, checked against the half."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hybrid.config.job_spec import JobSpec
from hybrid.config.table_config import TableSpec
from hybrid.errors import ConflictError, DataError, SpecError
from hybrid.lake.log_entries import DataFile
from hybrid.progress import counted
from hybrid.replace.naming import segment_names
from hybrid.replace.stage import StagedFile, StagedRows
from hybrid.schema.rounding import rounded_down
from hybrid.table.names import time_words, times_in_name, why_no_segment_name


@dataclass(frozen=True)
class Target:
    """A segment that the job writes: the numbers of its files, its number of rows, first and last time in ms."""

    name: str
    files: tuple[int, ...]
    rows: int
    low: int | None
    high: int | None


def check_fixed_name(job: JobSpec) -> None:
    """SpecError when the job spec's fixed name is not a valid segment name."""
    name = job.segment_name or ""
    why = why_no_segment_name(name) if job.segment_name_type == "fixed" else None
    if why is not None:
        path = "segmentNameGeneratorSpec.configs.segment.name"
        raise SpecError.at(job.source, path, f"'{name}' cannot be a segment's name: {why}.")


def targets_of(spec: TableSpec, job: JobSpec, staged: StagedRows) -> tuple[Target, ...]:
    """The segments of a job: one of the fixed name, or one for each name that its files with rows get."""
    if job.segment_name_type == "fixed":
        assert job.segment_name is not None
        return (_target(job.segment_name, range(len(staged.files)), staged.files),)
    of_name: dict[str, list[int]] = {}
    for number, name in segment_names(spec, job, staged.files).items():
        why = why_no_segment_name(name)
        if why is not None:
            raise _bad_name(job, staged.files[number].path, name, why)
        of_name.setdefault(name, []).append(number)
    return tuple(_target(name, numbers, staged.files) for name, numbers in of_name.items())


def replaced_names(targets: Sequence[Target], existing: Iterable[DataFile]) -> tuple[str, ...]:
    """Names that the half already holds, which the job therefore replaces."""
    existing_names = {file.segment for file in existing}
    return tuple(target.name for target in targets if target.name in existing_names)


def refuse_overlap(
    spec: TableSpec,
    targets: Sequence[Target],
    existing: Sequence[DataFile],
    going: Collection[str] = (),
    step_ms: int = 1,
) -> None:
    """ConflictError when a new segment's times overlap a remaining segment: a misspelt name would duplicate its rows.

    Times of that segment may have been rounded down to multiples of `step_ms`.
    """
    replaced = {*replaced_names(targets, existing), *going}
    for target in targets:
        if target.name in replaced or target.low is None or target.high is None:
            continue
        beside = sorted(
            {
                file.segment
                for file in existing
                if file.segment not in replaced and _overlaps(file, rounded_down(target.low, step_ms), target.high)
            }
        )
        if beside:
            raise ConflictError(
                f"Segment '{target.name}' does not exist, and its times "
                f"[{time_words(spec, target.low)}, {time_words(spec, target.high)}] "
                f"overlap {counted(len(beside), 'segment')}, e.g. '{beside[0]}'. Nothing was changed.",
                hint="To correct a segment, name it: hybrid job run SPEC.yml --var segmentName=... To add rows "
                "beside them: --append",
            )


def refuse_times_outside_name(
    spec: TableSpec, step_ms: int, name: str, staged: StagedRows, existing: Iterable[DataFile]
) -> None:
    """DataError when a row is outside of the times in a name like `orders_<min>_<max>_<seq>`.

    The rows probably belong to another segment and would then exist twice. `step_ms` is the rounding of times in
    OFFLINE.
    """
    named = times_in_name(spec, name, _held(name, existing))
    if named is None:
        return
    for file in staged.files:
        for time, at in ((file.low, file.low_at), (file.high, file.high_at)):
            if time is not None and not (named[0] <= time and rounded_down(time, step_ms) <= named[1]):
                first, last = (time_words(spec, limit) for limit in named)
                raise DataError(
                    f"{file.path}{at}: time {time_words(spec, time)} is outside of the times in the name of segment "
                    f"'{name}', {first} to {last}. Nothing was changed.",
                    hint="Name the segment that the rows belong to, or a new one to add them: "
                    "hybrid job run SPEC.yml --append",
                )


def _held(name: str, existing: Iterable[DataFile]) -> tuple[int, int] | None:
    """The first and last time of a segment; None when its files have no times, or it has no files."""
    times = [time for file in existing if file.segment == name for time in file.times or ()]
    return (min(times), max(times)) if times else None


def _overlaps(file: DataFile, low: int, high: int) -> bool:
    return file.times is not None and file.may_reach(low, high + 1)


def _target(name: str, numbers: Sequence[int], files: Sequence[StagedFile]) -> Target:
    """The segment of the files of these numbers."""
    of_name = [files[number] for number in numbers]
    low = min((file.low for file in of_name if file.low is not None), default=None)
    high = max((file.high for file in of_name if file.high is not None), default=None)
    return Target(name, tuple(numbers), sum(file.rows + file.deletes for file in of_name), low, high)


def _bad_name(job: JobSpec, path: Path, name: str, why: str) -> SpecError:
    kind = "segmentNameGeneratorSpec.type"
    return SpecError(
        f"{job.source}: {path} would give its segment the name '{name}', which cannot be one: {why}. "
        "Nothing was changed.",
        hint=f"Rename the file; or name segments otherwise: {kind} 'simple', or 'inputFile' with a file.path.pattern "
        "and a segment.name.template that leave the character out.",
    )
