"""Jobs that replace offline segments, or add to them, recorded as runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hybrid.config.job_spec import JobSpec
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.replace.report import JobReport


def run_replacement_job(
    home: Home, table: TableRef, job: JobSpec, *, dry_run: bool = False, **options: Any
) -> JobReport:
    """Replace offline segments by a job's rows, or add the rows, in one commit."""
    from hybrid.replace.job import run_job

    if dry_run:
        return run_job(home.bench, table.spec, table.layout, job, dry_run=True, **options)
    with home.recorded(table.name, job.job_type) as run:
        act_id = home.act_id("replace")
        report = run_job(home.bench, table.spec, table.layout, job, act_id=act_id, **options)
        run.ended(report.sentence, did_something=report.committed or report.staged_for is not None)
    return report
