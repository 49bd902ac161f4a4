"""The input files that a job names."""

from __future__ import annotations

from pathlib import Path

from hybrid.config.job_spec import JobSpec
from hybrid.errors import DataError, suggestion
from hybrid.expression.path_patterns import is_hidden


def list_inputs(job: JobSpec) -> list[Path]:
    """The job's files, sorted by path. DataError, naming folder, pattern and similar names, when there is none.

    Markers and checksums that writers leave beside their data (`_SUCCESS`, `.part-0.crc`) count only when a pattern
    names them.
    """
    paths = [path for path in job.input_files() if job.include or not is_hidden(path.name)]
    if not paths:
        raise _nothing_found(job)
    return paths


def _nothing_found(job: JobSpec) -> DataError:
    there = sorted(path.name for path in job.files_there())
    if not there:
        return DataError(
            f"{job.source}: the input folder '{job.input_dir}' holds no files.",
            hint="Give another: hybrid job run SPEC.yml --input DIR",
        )
    pattern = job.include or "any file"
    left_out = f" without '{job.exclude}'" if job.exclude else ""
    near = suggestion(pattern.rsplit("/", 1)[-1], there)
    shown = ", ".join(f"'{name}'" for name in there[:3]) + (f" and {len(there) - 3} more" if len(there) > 3 else "")
    return DataError(
        f"{job.source}: no file in '{job.input_dir}' matches '{pattern}'{left_out}; there are {shown}.{near}",
        hint="Change includeFileNamePattern, or give another folder: hybrid job run SPEC.yml --input DIR",
    )
