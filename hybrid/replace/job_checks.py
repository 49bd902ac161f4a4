"""Checks a job's staged rows against the expectations of its table, of its spec and of the caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hybrid.config.expectations import (
    Expectation,
    ExpectationKind,
    named_apart,
    parse_expect,
    parse_expectations,
)
from hybrid.config.job_spec import JobSpec
from hybrid.config.table_config import Half, TableSpec
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.half_frames import rows_in
from hybrid.lake.layout import quoted
from hybrid.lake.table_context import TableContext
from hybrid.replace.check_result import CheckResult, CheckState, change_result
from hybrid.replace.checks import Checked, check
from hybrid.replace.stage import FILE, StagedRows
from hybrid.replace.targets import replaced_names, targets_of
from hybrid.sql.expectation_sql import refuse_wrong_conditions
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CHANGE = ExpectationKind.ROW_COUNT_CHANGE


def expectations_of(spec: TableSpec, job: JobSpec, expect: Sequence[str]) -> tuple[Expectation, ...]:
    """All expectations on a job's rows; `expect` has the syntax of `--expect`. Errors name the place of a wrong one."""
    of_job = parse_expectations(job.expectations, spec.schema) if job.expectations is not None else ()
    return with_asked(spec, of_job, expect)


def with_asked(spec: TableSpec, more: Sequence[Expectation], expect: Sequence[str]) -> tuple[Expectation, ...]:
    """The table's expectations, `more`, and the caller's. Errors name the place of a wrong one."""
    requested = [parsed for text in expect for parsed in parse_expect(text, spec.schema)]
    refuse_wrong_conditions((*spec.expectations, *more, *requested), spec)
    return named_apart((*spec.expectations, *more, *requested))


def watched(expectations: Sequence[Expectation]) -> tuple[str, ...]:
    """The columns for which staged rows must distinguish a missing value from the default."""
    return tuple(expectation.columns[0] for expectation in expectations if expectation.kind is ExpectationKind.NOT_NULL)


def check_staged(
    bench: CommitContext, spec: TableSpec, staged: StagedRows, expectations: Sequence[Expectation]
) -> tuple[StagedRows, Checked]:
    """Checks the staged rows, except for their number. Returns the remaining rows and the results."""
    of_rows = [expectation for expectation in expectations if expectation.kind is not _CHANGE]
    if not of_rows:
        return staged, Checked(staged.frame, ())
    bench.progress.say(f"Checking {len(of_rows)} expectation{'s' * (len(of_rows) != 1)} on {staged.rows} rows.")
    checked = check(spec, staged.frame, of_rows, None, now_ms=bench.now_ms())
    return (_without(staged, checked.frame) if checked.dropped else staged), checked


def check_count(
    table: TableContext,
    job: JobSpec,
    staged: StagedRows,
    expectations: Sequence[Expectation],
) -> tuple[CheckResult, ...]:
    """Results of the expectations on the row count, compared with the segments that the job replaces now."""
    of_count = [expectation for expectation in expectations if expectation.kind is _CHANGE]
    if not of_count:
        return ()
    before = _rows_replaced(table, job, staged)
    return tuple(change_result(expectation, before, staged.rows) for expectation in of_count)


def uncounted(spec: TableSpec, expectations: Sequence[Expectation]) -> list[str]:
    """Warnings of expectations on the row count that are not checked because the job is one push of several.

    The table's own are checked when the replacement ends.
    """
    names = [
        expectation.name
        for expectation in expectations
        if expectation.kind is _CHANGE and expectation not in spec.expectations
    ]
    return [
        f"Expectation '{name}' is not looked at: the replacement that waits holds other rows too." for name in names
    ]


def notices(results: Sequence[CheckResult]) -> list[str]:
    """The warnings of a report."""
    return [result.sentence for result in results if result.state in (CheckState.WARNED, CheckState.DROPPED)]


def refused(results: Sequence[CheckResult]) -> str:
    """The text that a dry run adds to its sentence; empty when the job would succeed."""
    failed = [f"'{result.name}'" for result in results if result.state is CheckState.FAILED]
    return f" It would be refused: {', '.join(failed)} failed." if failed else ""


def _rows_replaced(table: TableContext, job: JobSpec, staged: StagedRows) -> int:
    """The number of rows in the segments that the job replaces, without delete markers."""
    base = table.half(Half.OFFLINE)
    replaced = replaced_names(targets_of(table.spec, job, staged), base.files)
    rows = rows_in(table.bench, base, replaced)
    return rows.where(quoted(columns.OP) == columns.OP_ROW).count() if replaced else 0


def _without(staged: StagedRows, frame: DataFrame) -> StagedRows:
    """The staged rows without those left out. Segment names are derived from the remaining times."""
    from pyspark.sql import functions as F

    is_row = F.col(columns.OP) != columns.OP_DELETE
    counts = frame.groupBy(FILE).agg(F.count_if(is_row), F.count_if(~is_row), F.min(columns.TIME), F.max(columns.TIME))
    by_file = {number: numbers for number, *numbers in counts.collect()}
    files = [file.left_with(*by_file.get(number, (0, 0, None, None))) for number, file in enumerate(staged.files)]
    return replace(staged, frame=frame, files=tuple(files))
