"""`hybrid backfill`: plan, inspect, run and revert the correction of a stretch of time."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from hybrid.cli.cells import View
from hybrid.cli.command import FINDINGS, Cli, HybridGroup, pass_cli
from hybrid.cli.completed_names import complete_plan_files, complete_plans
from hybrid.cli.dispatch import ask, confirm, tell
from hybrid.cli.job import read_expectation
from hybrid.cli.replacement import os_user, tell_job, tell_samples
from hybrid.errors import NotFoundError, UsageError

_BUCKETS = View(
    ("start", "end", "state", "rows_before", "rows_after", "added", "removed", "changed"), drop=("state", "rows_before")
)
_LISTED = View(
    ("id", "table", "created_at", "state", "buckets_done", "buckets_total", "change", "reason", "user", "result"),
    drop=("user", "table", "buckets_total"),
)
_OVER = {"CANCELLED", "REVERTED"}
_FLAGS = {"from_rejected", "from_kafka"}  # sent only when they are set
_SHOWN_MAX = 40
_SAMPLES = 10


@click.group(cls=HybridGroup, alone="list", named="list")
def backfill() -> None:
    """Correct a time range: plan, inspect, run, revert."""


@backfill.command()
@click.argument("table", metavar="TABLE")
@click.option("--from", "start", metavar="TIME", help="Begin (inclusive): a time, or as the time column writes it.")
@click.option("--to", "end", metavar="TIME", help="End (exclusive).")
@click.option("--update", metavar="'a = expr, ...'", help="New values for the rows that match.")
@click.option("--delete", is_flag=True, help="Remove the rows that match.")
@click.option("--where", metavar="CONDITION", help="Which rows; default: all of the time range.")
@click.option("--input", "input_", metavar="PATH", help="A file or folder of rows that replace all others.")
@click.option("--sql", metavar="SELECT", help="A statement whose rows replace all others.")
@click.option("--from-rejected", is_flag=True, help="Add the rejected rows that convert now.")
@click.option("--from-kafka", is_flag=True, help="What Kafka still holds comes in the place of what came by it.")
@click.option(
    "--expect", multiple=True, metavar="EXPECTATION", help="Condition that the rows must meet; @FILE reads JSON."
)
@click.option(
    "-o", "--output", "output", type=click.Path(dir_okay=False, path_type=Path), help="Write PLAN.json to this file."
)
@click.option("--samples", metavar="N", type=click.IntRange(0), default=_SAMPLES, help="Show so many changed rows.")
@click.option("--reason", help="Why; kept with the lineage entries.")
@pass_cli
def plan(
    cli: Cli,
    /,
    table: str,
    input_: str | None,
    expect: tuple[str, ...],
    output: Path | None,
    samples: int,
    **change: Any,
) -> int:
    """Stage corrected rows and show what they would change. Nothing is visible; query it: SET plan='ID'; SELECT ..."""
    if output is not None and not output.absolute().parent.is_dir():
        raise NotFoundError(f"-o {output}: folder '{output.absolute().parent}' does not exist.")
    rows = str(Path(input_).expanduser().absolute()) if input_ is not None else None
    expectations = [read_expectation(text) for text in expect]
    change |= {"table": table, "input": rows, "expect": expectations, "user": os_user()}
    change = {name: value for name, value in change.items() if value or name not in _FLAGS}
    report = ask(cli, "backfill_plan", **change)
    if output is not None:
        output.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    tell(cli, report)
    if not cli.is_machine_read:
        _show_buckets(cli, report, samples)
        for check in report["checks"]:
            cli.say(f"{check['state']}: {check['sentence']}")
        place = str(output) if output is not None else report["id"]
        cli.say(f"Look at it:  hybrid query \"SET plan='{report['id']}'; SELECT ... FROM {report['table']}\"")
        if any(bucket["swap"] is not None for bucket in report["buckets"]):
            cli.say(f"Swap it in:  hybrid backfill run {place}")
    return FINDINGS if report["failed_checks"] else 0


def _show_buckets(cli: Cli, found: dict[str, Any], samples_max: int = _SAMPLES) -> None:
    touched = [bucket for bucket in found["buckets"] if bucket["swap"] is not None]
    cli.emit(touched[:_SHOWN_MAX] or found["buckets"][:_SHOWN_MAX], _BUCKETS)
    if len(touched) > _SHOWN_MAX:
        cli.say(f"... and {len(touched) - _SHOWN_MAX} more buckets that change.")
    held = [sample for bucket in touched for sample in bucket["samples"]]
    samples = held[:samples_max]
    if samples:
        total = sum(bucket[kind] for bucket in touched for kind in ("added", "removed", "changed"))
        cli.say(f"Samples, {_share(len(samples), len(held), total)}:")
        tell_samples(cli, found["table"], samples)


def _share(shown: int, held: int, total: int) -> str:
    """How many of the rows that differ are shown, and what shows more of them."""
    if shown >= total:
        return "all rows that differ" if total > 1 else "the row that differs"
    more = "--samples N for more" if held > shown else "query the plan for all"
    return f"{shown} of {total} rows that differ ({more})"


@backfill.command()
@click.argument("plan", metavar="PLAN.json|ID", shell_complete=complete_plan_files)
@click.option("--reason", help="Why; kept with the lineage entries. Without it the plan's own.")
@click.option("--atomic", is_flag=True, help="All buckets in one commit.")
@click.option("--newest-first", is_flag=True, help="The newest buckets first.")
@click.option("--rows-per-second", type=click.FloatRange(min=0, min_open=True), help="Go no faster than this.")
@click.option("--max-parallel", type=click.IntRange(min=1), help="Write with at most so many tasks.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_cli
def run(
    cli: Cli,
    plan: str,
    reason: str | None,
    atomic: bool,
    newest_first: bool,
    rows_per_second: float | None,
    max_parallel: int | None,
    yes: bool,
) -> None:
    """Run a plan bucket by bucket; completed buckets are skipped."""
    plan_id, document = _read(plan)
    report = ask(cli, "backfill", backfill=plan_id)
    confirm(f"{report['plan']['sentence']} Run it?", yes)
    how = {"atomic": atomic, "newest_first": newest_first, "max_parallel": max_parallel}
    _run(cli, plan_id, document=document, rows_per_second=rows_per_second, reason=reason, **how)


def _run(cli: Cli, plan_id: str, **how: object) -> None:
    tell(cli, ask(cli, "backfill_run", backfill=plan_id, user=os_user(), **how))


def _read(plan: str) -> tuple[str, dict[str, Any] | None]:
    """The id of the plan, and its document if a file was named."""
    path = Path(plan)
    if not path.exists() and not plan.endswith(".json"):
        return plan, None
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise NotFoundError(f"File '{plan}' does not exist.") from error
    except (ValueError, OSError) as error:
        raise UsageError(f"{plan} is no plan: {error}.", hint="hybrid backfill plan TABLE ... -o PLAN.json") from error
    if not isinstance(document, dict) or not isinstance(document.get("id"), str):
        raise UsageError(f"{plan} is no plan: it has no id.", hint="hybrid backfill plan TABLE ... -o PLAN.json")
    return document["id"], document


@backfill.command("list")
@click.argument("table", metavar="[TABLE]", required=False)
@pass_cli
def list_(cli: Cli, table: str | None) -> None:
    """List backfills with their state, newest first."""
    of_table = f" of table '{table}'" if table else ""
    empty = (
        f"No backfills{of_table} yet. Plan one with: hybrid backfill plan {table or 'TABLE'} --from TIME --to TIME ..."
    )
    cli.emit(ask(cli, "backfills", table=table), _LISTED, empty=empty)


@backfill.command()
@click.argument("plan", metavar="ID", shell_complete=complete_plans)
@pass_cli
def status(cli: Cli, plan: str) -> None:
    """Show the state of a backfill, with its plan."""
    report = ask(cli, "backfill", backfill=_read(plan)[0])
    if cli.is_machine_read:
        cli.emit(report)
        return
    cli.emit({name: value for name, value in report.items() if name != "plan"})
    _show_buckets(cli, report["plan"])


@backfill.command()
@click.argument("plan", metavar="ID", shell_complete=complete_plans)
@pass_cli
def pause(cli: Cli, plan: str) -> None:
    """Pause a run after the current commit."""
    cli.emit(ask(cli, "backfill_pause", backfill=_read(plan)[0]))


@backfill.command()
@click.argument("plan", metavar="ID", shell_complete=complete_plans)
@pass_cli
def resume(cli: Cli, plan: str) -> None:
    """Resume a run that was paused or killed; completed buckets are skipped."""
    _run(cli, _read(plan)[0])


@backfill.command()
@click.argument("plan", metavar="ID", shell_complete=complete_plans)
@pass_cli
def cancel(cli: Cli, plan: str) -> None:
    """Stop a run permanently. Its corrections stay, and can be reverted."""
    report = ask(cli, "backfill_cancel", backfill=_read(plan)[0])
    if report["taken"] and report["state"] in _OVER:
        cli.say(ask(cli, "backfill_release", backfill=report["id"])["sentence"])
        report = {**report, "taken": 0}
    cli.emit(report)


@backfill.command()
@click.argument("plan", metavar="ID", shell_complete=complete_plans)
@click.option("--reason", help="Why; kept with the lineage entry.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_cli
def revert(cli: Cli, plan: str, reason: str | None, yes: bool) -> int:
    """Revert all corrections of a backfill, in one commit."""
    plan_id = _read(plan)[0]
    report = ask(cli, "backfill", backfill=plan_id)
    confirm(f"Revert {plan_id} of table '{report['table']}' ({report['change']})?", yes)
    return tell_job(cli, ask(cli, "backfill_revert", backfill=plan_id, reason=reason, user=os_user()))
