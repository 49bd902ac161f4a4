"""The expectations on a job: those of its table, of its spec and of whoever runs it, on the rows that it has staged."""

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
from hybrid.lake.layout import TableLayout, quoted
from hybrid.lake.log import open_half
from hybrid.replace.check_result import CheckResult, CheckState, change_result
from hybrid.replace.checks import Checked, check
from hybrid.replace.stage import FILE, StagedFile, StagedRows
from hybrid.replace.swap import newest_rows
from hybrid.replace.targets import replaced_names, targets_of
from hybrid.sql.expectation_sql import refuse_wrong_conditions
from hybrid.table import columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CHANGE = ExpectationKind.ROW_COUNT_CHANGE


def expectations_of(spec: TableSpec, job: JobSpec, expect: Sequence[str]) -> tuple[Expectation, ...]:
    """All that is expected of a job's rows; `expect` as `--expect` takes them. Errors at the place of a wrong one."""
    of_job = parse_expectations(job.expectations, spec.schema) if job.expectations is not None else ()
    return with_asked(spec, of_job, expect)


def with_asked(spec: TableSpec, more: Sequence[Expectation], expect: Sequence[str]) -> tuple[Expectation, ...]:
    """Those of the table, `more`, and those that whoever runs it asks for; errors at the place of a wrong one."""
    asked = [one for text in expect for one in parse_expect(text, spec.schema)]
    refuse_wrong_conditions((*spec.expectations, *more, *asked), spec)
    return named_apart((*spec.expectations, *more, *asked))


def watched(expectations: Sequence[Expectation]) -> tuple[str, ...]:
    """The columns whose missing values staged rows must tell from their defaults."""
    return tuple(one.columns[0] for one in expectations if one.kind is ExpectationKind.NOT_NULL)


def check_staged(
    bench: CommitContext, spec: TableSpec, staged: StagedRows, expectations: Sequence[Expectation]
) -> tuple[StagedRows, Checked]:
    """Looks at the staged rows, but for how many there are; what is left of them, and what came of it."""
    of_rows = [one for one in expectations if one.kind is not _CHANGE]
    if not of_rows:
        return staged, Checked(staged.frame, ())
    bench.progress.say(f"Checking {len(of_rows)} expectation{'s' * (len(of_rows) != 1)} on {staged.rows} rows.")
    checked = check(spec, staged.frame, of_rows, None, now_ms=bench.now_ms())
    return (_without(staged, checked.frame) if checked.dropped else staged), checked


def check_count(
    bench: CommitContext,
    spec: TableSpec,
    layout: TableLayout,
    job: JobSpec,
    staged: StagedRows,
    expectations: Sequence[Expectation],
) -> tuple[CheckResult, ...]:
    """What came of the expectations on how many rows there are, beside those of the segments that are replaced now."""
    of_count = [one for one in expectations if one.kind is _CHANGE]
    if not of_count:
        return ()
    before = _rows_replaced(bench, spec, layout, job, staged)
    return tuple(change_result(one, before, staged.rows) for one in of_count)


def uncounted(spec: TableSpec, expectations: Sequence[Expectation]) -> list[str]:
    """Warnings of expectations on how many rows there are that nobody looks at: of a job that is one push of several.

    Those of the table are looked at when the replacement ends.
    """
    names = [one.name for one in expectations if one.kind is _CHANGE and one not in spec.expectations]
    return [
        f"Expectation '{name}' is not looked at: the replacement that waits holds other rows too." for name in names
    ]


def notices(results: Sequence[CheckResult]) -> list[str]:
    """What a report warns of."""
    return [one.sentence for one in results if one.state in (CheckState.WARNED, CheckState.DROPPED)]


def refused(results: Sequence[CheckResult]) -> str:
    """What a dry run adds to its sentence; nothing when the job would be done."""
    failed = [f"'{one.name}'" for one in results if one.state is CheckState.FAILED]
    return f" It would be refused: {', '.join(failed)} failed." if failed else ""


def _rows_replaced(bench: CommitContext, spec: TableSpec, layout: TableLayout, job: JobSpec, staged: StagedRows) -> int:
    """Delete markers are not counted."""
    base = open_half(layout.half(Half.OFFLINE))
    replaced = replaced_names(targets_of(spec, job, staged), base.files)
    rows = newest_rows(bench, base).where(quoted(columns.SEGMENT).isin(list(replaced)))
    return rows.where(quoted(columns.OP) == columns.OP_ROW).count() if replaced else 0


def _without(staged: StagedRows, frame: DataFrame) -> StagedRows:
    """What was staged, without the rows that were left out: names of segments come from the times that are left."""
    from pyspark.sql import functions as F

    is_row = F.col(columns.OP) != columns.OP_DELETE
    counts = frame.groupBy(FILE).agg(F.count_if(is_row), F.count_if(~is_row), F.min(columns.TIME), F.max(columns.TIME))
    left = {number: found for number, *found in counts.collect()}
    nothing = (0, 0, None, None)
    files = [StagedFile(file.path, *left.get(number, nothing)) for number, file in enumerate(staged.files)]
    return replace(staged, frame=frame, files=tuple(files))
