"""Jobs that replace offline segments, or add to them, recorded as runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybrid.config.job_spec import JobSpec
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef
    from hybrid.replace.job_options import JobOptions
    from hybrid.replace.report import JobReport


def run_replacement_job(home: Home, table: TableRef, job: JobSpec, options: JobOptions) -> JobReport:
    """Replace offline segments by a job's rows, or add the rows, in one commit."""
    from hybrid.replace.job import run_job

    def work() -> JobReport:
        return run_job(home.table_context(table), job, options, act_id=home.act_id("replace"))

    return home.run_recorded(table.name, job.job_type, work, dry_run=options.dry_run)
