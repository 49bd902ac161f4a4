"""A replacement job: reads files and replaces or adds offline segments in one commit that can be reverted.

The steps, and the state after a crash in each:
  list and fingerprint the files                          nothing done
  convert and stage the rows beside the halves            staged files, swept later; a wrong row ends the job here
  check the expectations                                  nothing done; a failed expectation ends the job here
  stage the segments for an open replacement, if any      nothing visible; one rename, see hybrid.lake.pushes
  plan: names, checks, markers, the difference            nothing done
  take the OFFLINE lock; on a conflict plan again         nothing done
  one Delta commit: segments and lineage entry            done, or not done
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hybrid.config.expectations import Expectation
from hybrid.config.job_names import BY_TIMES
from hybrid.config.job_spec import JobSpec
from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import ConflictError, DataError, SpecError, UsageError, suggestion
from hybrid.files.csvfile import ends_line
from hybrid.files.inputs import DataFormat, InputFile, inspect
from hybrid.formats.csv_format import CsvFormat, multi_value_columns, text_columns
from hybrid.lake.commit_context import CommitContext, new_act_id
from hybrid.lake.pushes import OpenReplacement
from hybrid.lake.table_context import TableContext
from hybrid.replace.check_result import CheckResult, refuse_failed
from hybrid.replace.diff import Difference
from hybrid.replace.duplicates import refuse_duplicate_keys
from hybrid.replace.inputs import list_inputs
from hybrid.replace.job_checks import check_count, check_staged, expectations_of, notices, refused, uncounted, watched
from hybrid.replace.job_options import JobOptions
from hybrid.replace.lineage import ReplacementEntry, lineage_of
from hybrid.replace.naming import naming_warnings
from hybrid.replace.net_delete_guard import refuse_reviving, refuse_swallowing
from hybrid.replace.plan import JobPlan, plan_job, refuse_outdated
from hybrid.replace.pushing import awaited_by, publish_push, stage_push
from hybrid.replace.report import (
    JobReport,
    dropped,
    report_of,
    sentence_of_job,
    sentence_of_nothing,
    sentence_of_push,
    shown,
)
from hybrid.replace.stage import StagedRows, stage
from hybrid.replace.swap import NOT_YET, Swap, commit_swap, require_offline
from hybrid.replace.targets import Target, check_fixed_name, refuse_times_outside_name, targets_of
from hybrid.table.correction_window import rounded_to
from hybrid.table.lineage import Lineage

__all__ = ["JobReport", "ReplacementEntry", "run_job"]

_NO_OPTIONS = JobOptions()


@dataclass(frozen=True)
class _Run:
    """The parameters that every step of one run needs."""

    table: TableContext
    job: JobSpec
    act_id: str
    files: tuple[InputFile, ...]
    folder: Path
    options: JobOptions
    expectations: Sequence[Expectation]
    checked: tuple[CheckResult, ...]


def run_job(
    table: TableContext,
    job: JobSpec,
    options: JobOptions = _NO_OPTIONS,
    *,
    act_id: str | None = None,
) -> JobReport:
    """Replaces offline segments by the rows of the job's files, or adds them as new segments.

    `act_id` is the operation's id; by default it is generated.

    DataError names the first row that cannot be converted, or the expectations that failed. ConflictError when
    segments of the same times exist beside the new ones, or when the rows reach past the boundary. Nothing was changed
    then. Rows of segments that an open replacement waits for are staged for it instead.
    """
    require_offline(table.spec)
    _check_table(table.spec, job)
    check_fixed_name(job)
    csv_format = CsvFormat.of(
        job.reader_configs, multi_value_columns(table.spec.schema), job.source, texts=text_columns(table.spec.schema)
    )
    expectations = expectations_of(table.spec, job, options.expect)
    act_id = act_id or new_act_id("replace")
    files = _inspect_all(table.bench, job)
    with table.staging(act_id) as folder:
        table.bench.progress.say(f"Reading {_files_shown(files)}.")
        staged = stage(table.bench, table.spec, files, csv_format, folder / "input", watched(expectations))
        if not options.allow_empty:
            _refuse_hollow(staged, files)
        staged, checked = check_staged(table.bench, table.spec, staged, expectations)
        if checked.failed and not options.dry_run:
            counted = check_count(table, job, staged, expectations)
            refuse_failed(table.name, (*checked.results, *counted))
        if staged.is_empty and not (options.allow_empty or options.dry_run):
            raise _empty(job, files, staged.filtered, checked.dropped)
        refuse_duplicate_keys(table.spec, files, csv_format, staged)
        run = _Run(table, job, act_id, files, folder, options, expectations, checked.results)
        return table.until_not_overtaken(lambda: _attempt(run, staged), job.push_attempts)


def _attempt(run: _Run, staged: StagedRows) -> JobReport:
    targets = targets_of(run.table.spec, run.job, staged)
    awaiting = awaited_by(run.table.layout, run.job, targets)
    if awaiting is not None:
        return _push(run, staged, targets, awaiting)
    counted = check_count(run.table, run.job, staged, run.expectations)
    results = (*run.checked, *counted)
    if not run.options.dry_run:
        refuse_failed(run.table.name, results)
    run.table.bench.progress.say(f"Comparing {staged.rows} rows with what '{run.table.name}' holds.")
    plan = plan_job(run.table, run.job, staged, append=run.options.append, folder=run.folder)
    warnings = (
        *run.job.warnings,
        *_warnings(run.table.spec, staged),
        *naming_warnings(run.job, staged.files),
        *_cut_warnings(run),
        *plan.warnings,
        *notices(results),
    )
    names = (plan.segments_from, plan.segments_to)
    details: dict[str, object] = {"warnings": warnings, "expectations": results, "dry_run": run.options.dry_run}
    if plan.is_nothing:
        sentence = _nothing_sentence(run.job, plan, staged.filtered)
        return report_of(run.table.name, names, plan.found, sentence + refused(results), **details)
    _refuse_replacing(run, plan)
    refuse_reviving(run.table, plan.base, plan.segments_from)
    refuse_swallowing(run.table, plan.base, plan.segments_from, plan.rows(NOT_YET))
    sentence = sentence_of_job(plan.segments_from, plan.segments_to, plan.found, run.options.dry_run, staged.filtered)
    if run.options.dry_run:
        return report_of(run.table.name, names, plan.found, sentence + refused(results), **details)
    run.table.bench.progress.say(f"Swapping in {shown(plan.segments_to or plan.segments_from)} of '{run.table.name}'.")
    swap = Swap(run.act_id, "replace", plan.base, _lineage(run, plan, sentence, results), plan.rows, plan.holds)
    version = commit_swap(run.table, swap)
    return report_of(run.table.name, names, plan.found, sentence, act=run.act_id, version=version, **details)


def _push(run: _Run, staged: StagedRows, targets: Sequence[Target], entry: OpenReplacement) -> JobReport:
    """Stages the rows for the open replacement that waits for them. The row count is checked when it ends."""
    if not run.options.dry_run:
        refuse_failed(run.table.name, run.checked)
    offline = run.table.half(Half.OFFLINE)
    refuse_outdated(run.table.spec, run.job, offline)
    if run.job.segment_name_type == "fixed" and not run.options.append:
        step_ms = rounded_to(run.table.spec, offline.offline.boundary)
        refuse_times_outside_name(run.table.spec, step_ms, targets[0].name, staged, offline.files)
    names = tuple(target.name for target in targets)
    diff = Difference(0, staged.rows, added=staged.rows)
    sentence = sentence_of_push(names, staged.rows, entry.id, run.options.dry_run, staged.filtered)
    warnings = (*run.job.warnings, *_warnings(run.table.spec, staged), *naming_warnings(run.job, staged.files),
                *_cut_warnings(run), *notices(run.checked), *uncounted(run.table.spec, run.expectations))  # fmt: skip
    details: dict[str, object] = {"warnings": warnings, "expectations": run.checked, "dry_run": run.options.dry_run}
    if run.options.dry_run:
        return report_of(run.table.name, ((), names), diff, sentence + refused(run.checked), **details)
    folder = run.folder / "push"
    push = replace(
        stage_push(run.table, staged, targets, folder),
        source=run.job.source,
        inputs=tuple(_input(run.job, file) for file in run.files),
        checks=tuple(result.to_json() for result in run.checked),
    )
    publish_push(run.table.layout, entry, push, folder)
    return report_of(run.table.name, ((), names), diff, sentence, staged_for=entry.id, **details)


def _refuse_replacing(run: _Run, plan: JobPlan) -> None:
    """ConflictError where `append` would remove rows: another file with the same times has the same name."""
    is_lossy = bool(plan.segments_from) and bool(plan.found.removed or plan.found.changed)
    if run.options.append and is_lossy and not plan.covers and run.job.segment_name_type in BY_TIMES:
        raise ConflictError(
            f"{shown(plan.segments_from)} of '{run.table.name}' would be replaced, not added to: segments are named "
            "after the table and their times, and other rows have these names. Nothing was changed.",
            hint="To add the rows, give the segment a name of its own in the spec: segment.name.postfix, or "
            "append.uuid.to.segment.name: true. To replace them: hybrid job run SPEC.yml without --append.",
        )


def _lineage(run: _Run, plan: JobPlan, sentence: str, results: Sequence[CheckResult]) -> Lineage:
    return lineage_of(
        plan.base,
        (plan.segments_from, plan.segments_to),
        plan.found,
        sentence,
        reason=run.options.reason,
        user=run.options.user,
        source=run.job.source,
        inputs=tuple(_input(run.job, file) for file in run.files),
        expectations=tuple(result.to_json() for result in results),
    )


def _input(job: JobSpec, file: InputFile) -> dict[str, object]:
    """An input in the lineage: a file, or the SQL statement that gave its rows."""
    if job.statement is None:
        return {**file.to_json(), "path": job.address_of(file.path)}
    return {**file.to_json(), "path": None, "sql": job.statement.sql, "revision": job.statement.revision}


def _check_table(spec: TableSpec, job: JobSpec) -> None:
    if job.table_name != spec.name:
        near = suggestion(job.table_name, [spec.name])
        raise SpecError.at(job.source, "tableSpec.tableName", f"'{job.table_name}' is not table '{spec.name}'.{near}")


def _inspect_all(bench: CommitContext, job: JobSpec) -> tuple[InputFile, ...]:
    paths = list_inputs(job)
    files = []
    for number, path in enumerate(paths, 1):
        files.append(inspect(path, DataFormat(job.data_format)))
        if job.rules is not None:  # a symbolic link may have changed since the listing
            job.rules.check(Path(files[-1].real), str(path))
        bench.progress.step("checking input files", number, len(paths))
    return tuple(files)


def _refuse_hollow(staged: StagedRows, files: Sequence[InputFile]) -> None:
    """DataError for a file without rows among others with some: it was probably cut off."""
    hollow = [file for file, converted in zip(files, staged.files, strict=True) if converted.is_empty]
    if hollow and len(hollow) < len(files):
        raise DataError(
            f"{hollow[0].path} holds no rows ({hollow[0].bytes} bytes) while others of the {len(files)} files do; was "
            "it cut off? Nothing was changed.",
            hint="Leave it out with excludeFileNamePattern, or take it as a file without rows: "
            "hybrid job run SPEC.yml --yes",
        )


def _empty(job: JobSpec, files: Sequence[InputFile], filtered: int, left_out: int) -> UsageError:
    what = f"segment '{job.segment_name}'" if job.segment_name else "anything"
    return UsageError(
        f"{_files_shown(files)} hold{'s' * (len(files) == 1)} no rows{dropped(filtered)}{_left_out(left_out)}; putting "
        f"nothing in place of {what} needs --yes. Nothing was changed.",
        hint="hybrid job run ... --yes",
    )


def _left_out(rows: int) -> str:
    """Empty for 0."""
    return f" that are not left out by expectations ({rows} were)" if rows else ""


def _warnings(spec: TableSpec, staged: StagedRows) -> list[str]:
    warnings = []
    if staged.absent and not staged.is_empty:
        names = ", ".join(f"'{name}'" for name in staged.absent)
        warnings.append(f"No row of the input has column {names} of table '{spec.name}'; its default was written.")
    hollow = [file.path for file in staged.files if not file.rows and not file.deletes]
    if hollow and not staged.is_empty:
        warnings.append(f"{len(hollow)} of {len(staged.files)} files hold no rows, e.g. {hollow[0]}.")
    return warnings


def _cut_warnings(run: _Run) -> list[str]:
    """Warnings of CSV files that may be cut off. JSON, and formats with a footer, detect this themselves."""
    cut = [file.path for file in run.files if run.job.data_format == DataFormat.CSV and not ends_line(file.path)]
    return [f"{path} does not end with the end of a line; was it cut off?" for path in cut[:3]]


def _nothing_sentence(job: JobSpec, plan: JobPlan, filtered: int) -> str:
    if plan.segments_to:
        return sentence_of_nothing(plan.segments_to, plan.found, filtered)
    what = f"segment '{job.segment_name}' does not exist" if job.segment_name else "no row gives a segment a name"
    return f"Nothing to change: the input holds no rows{dropped(filtered)} and {what}."


def _files_shown(files: Sequence[InputFile]) -> str:
    size = sum(file.bytes for file in files)
    return f"{files[0].path} ({size} bytes)" if len(files) == 1 else f"{len(files)} files ({size} bytes)"
