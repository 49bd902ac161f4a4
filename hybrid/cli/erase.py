"""`hybrid erase`: remove a person's rows from every place of one or several tables, and certify it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from hybrid.cli.cells import View
from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.dispatch import ask, confirm, tell
from hybrid.cli.replacement import os_user
from hybrid.errors import ConflictError, NotFoundError, SpecError, UsageError

_READINGS = View(("table", "place", "current", "files", "rows", "matching", "shown", "by"), drop=("files", "by"))
_LISTED = View(("id", "created_at", "state", "tables", "reason", "user", "sentence"), drop=("user", "created_at"))
_PLACES = View(("table", "place", "current", "files", "rows", "found", "left"), drop=("files", "current"))
_STEPS = View(("at", "table", "step", "sentence"), drop=("at",))
_OUTSIDE = View(("place", "detail", "who"))
_EXAMPLE = 'hybrid erase run orders --where "customer_id = 7"'


@click.group(cls=HybridGroup, alone="list", named="run")
def erase() -> None:
    """Erase rows from every place of tables, with a certificate. `run` may be left out."""


@erase.command()
@click.argument("tables", metavar="[TABLE,...]", required=False)
@click.option("--where", metavar="CONDITION", help="Which rows, in each table; @FILE or @- reads it.")
@click.option("--subject-file", metavar="FILE", help="Conditions by table, as a JSON object; - reads standard input.")
@click.option("--undecided", is_flag=True, help="Remove rejected messages too that may match.")
@click.option("--dropped-copies", is_flag=True, help="Remove copies of dropped tables with such rows.")
@click.option("--dry-run", is_flag=True, help="Show where such rows are; change nothing.")
@click.option("--reason", help="Why; kept in the certificate, so it must not name the person.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_cli
def run(
    cli: Cli,
    /,
    tables: str | None,
    where: str | None,
    subject_file: str | None,
    dry_run: bool,
    yes: bool,
    **options: Any,
) -> int:
    """Delete the rows, purge every place, mask statements, and certify it. The same command resumes an open erasure.

    It cannot be taken back.
    """
    conditions = _conditions(tables, where, subject_file)
    names = ", ".join(f"'{name}'" for name in conditions)
    if not (dry_run or yes or sys.stdin.isatty()):
        confirm(f"Erase from {names}? It cannot be taken back.", yes)
    begun = ask(cli, "erase_begin", tables=conditions, user=os_user(), **options)
    is_new = begun["is_new"]
    if not is_new:
        cli.say(f"Erasure {begun['id']} of {begun['created_at']} goes on.")
    # A new one has its options; one that was open gets them when this run is confirmed.
    given = {} if is_new else {name: value for name, value in {**options, "user": os_user()}.items() if value}
    if not yes or dry_run:
        try:
            report = ask(cli, "erase_run", erasure=begun["id"], dry_run=True, **given)
            if not (dry_run and cli.is_machine_read):
                _show_readings(cli, report)
            if not dry_run:
                _refuse(report)
                confirm(f"Erase from {names}? It cannot be taken back.", yes)
        except BaseException:
            _discard_new(cli, begun)
            raise
        if dry_run:
            _discard_new(cli, begun)
            _say_what_follows(cli, report["refusals"])
            if cli.is_machine_read:
                cli.emit(report)
            return ConflictError.exit_code if report["refusals"] else 0
    cli.say(f"Erasure {begun['id']}: hybrid erase resume {begun['id']} goes on with it after an interruption.")
    _show(cli, ask(cli, "erase_run", erasure=begun["id"], **given))
    return 0


@erase.command()
@click.argument("erasure", metavar="ID")
@pass_cli
def resume(cli: Cli, erasure: str) -> None:
    """Resume an erasure that was interrupted or refused."""
    _show(cli, ask(cli, "erase_run", erasure=erasure))


@erase.command()
@click.argument("erasure", metavar="ID")
@pass_cli
def show(cli: Cli, erasure: str) -> None:
    """Show the certificate of an erasure."""
    _show(cli, ask(cli, "erasure", erasure=erasure))


@erase.command("list")
@pass_cli
def list_(cli: Cli) -> None:
    """List erasures, newest first."""
    report = ask(cli, "erasures")
    if not cli.is_machine_read:
        report = [{**one, "tables": _names(one)} for one in report]
    cli.emit(report, _LISTED, empty=f"No erasures yet. To erase a person's rows: {_EXAMPLE}")


@erase.command()
@click.argument("erasure", metavar="ID")
@pass_cli
def discard(cli: Cli, erasure: str) -> None:
    """End an open erasure without proof, and remove its conditions."""
    tell(cli, ask(cli, "erase_discard", erasure=erasure))


def _conditions(tables: str | None, where: str | None, subject_file: str | None) -> dict[str, str]:
    """The condition of each table. UsageError for anything else than one form of giving them."""
    if subject_file is not None:
        if tables is not None or where is not None:
            raise UsageError("--subject-file has tables and conditions: it takes neither a table nor --where.")
        return _subjects(_text_of(subject_file), subject_file)
    if tables is None or where is None:
        raise UsageError("Which rows of which tables? Give tables and --where, or --subject-file.", hint=_EXAMPLE)
    condition = _text_of(where[1:]) if where.startswith("@") else where
    names = [name.strip() for name in tables.split(",")]
    if not all(names):
        raise UsageError(f"'{tables}' has an empty name of a table.", hint=_EXAMPLE)
    return dict.fromkeys(names, condition.strip())


def _subjects(text: str, source: str) -> dict[str, str]:
    from hybrid.config.overrides import parse_document

    try:
        document = parse_document(text, f"--subject-file {source}")
    except SpecError as error:
        raise UsageError(str(error)) from error
    conditions = {name: where for name, where in document.items() if isinstance(where, str)}
    if len(conditions) != len(document):
        raise UsageError(f'--subject-file {source}: expected an object like {{"orders": "customer_id = 7"}}.')
    return conditions


def _text_of(path: str) -> str:
    if path == "-":
        return sys.stdin.read()
    try:
        return Path(path).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise NotFoundError(f"{path} cannot be read: {error}.") from error


def _discard_new(cli: Cli, begun: dict[str, Any]) -> None:
    """Forgets an erasure that was only looked at. One that had begun before stays, or that others have taken up."""
    if begun["is_new"]:
        ask(cli, "erase_discard", erasure=begun["id"], unused=True)


def _refuse(report: dict[str, Any]) -> None:
    """ConflictError for what an erasure would refuse, before anybody is asked to confirm it."""
    refusals = report["refusals"]
    if refusals:
        messages = " ".join(refusal["message"] for refusal in refusals)
        raise ConflictError(f"{messages} Nothing was removed.", hint=refusals[0]["hint"])


def _say_what_follows(cli: Cli, refusals: list[dict[str, Any]]) -> None:
    """What the command of a dry run does without it: it erases, or it is refused."""
    if not refusals:
        cli.say("Nothing was removed. The same command without --dry-run erases.")
        return
    cli.say("Nothing was removed. The same command without --dry-run is refused:")
    for refusal in refusals:
        cli.say(f"- {refusal['message']}")
        cli.say(f"  hint: {refusal['hint']}")


def _names(report: dict[str, Any]) -> str:
    return ", ".join(table["table"] for table in report["tables"])


def _show_readings(cli: Cli, report: dict[str, Any]) -> None:
    cli.say(report["sentence"])
    if not cli.is_machine_read:
        cli.emit([{**one, "by": ", ".join(one["by"])} for one in report["readings"]], _READINGS)


def _show(cli: Cli, report: dict[str, Any]) -> None:
    """A certificate: its sentence, places, steps, and what is out of reach."""
    if cli.is_machine_read:
        cli.say(report["sentence"])
        cli.emit(report)
        return
    tables = report["tables"]
    head = {name: report[name] for name in ("id", "state", "created_at", "finished_at", "reason", "user", "error")}
    conditions = "; ".join(f"{table['table']}: {table['condition']}" for table in tables)
    cli.emit({**head, "conditions": conditions, "result": report["sentence"]})
    cli.emit([place for table in tables for place in _places(table)], _PLACES)
    if report["steps"]:
        cli.emit(report["steps"], _STEPS)
    if report["outside"]:
        cli.say("Out of reach, and who must act there:")
        cli.emit(report["outside"], _OUTSIDE)


def _places(table: dict[str, Any]) -> list[dict[str, Any]]:
    """Each place of a table: matching rows at the first reading, and after the last purge (None: not yet)."""
    left = {(place["place"], place["current"]): place for place in table["after"]}
    rows = []
    for place in table["before"]:
        last = left.get((place["place"], place["current"]))
        counts = {name: (last or place)[name] for name in ("files", "rows")}
        rows.append({"table": table["table"], "place": place["place"], "current": place["current"], **counts,
                     "found": place["matching"], "left": None if last is None else last["matching"]})  # fmt: skip
    return rows
