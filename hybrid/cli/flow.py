"""`hybrid flow`: run flow files, and list flows with their state."""

from __future__ import annotations

from pathlib import Path

import click

from hybrid.cli.cells import View
from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.dispatch import ask, confirm, dispatcher, refuse_server, require_right
from hybrid.cli.job import read_variables

_LISTED = View(
    ("target", "flow", "type", "state", "last_run", "rows", "rejected", "files", "refreshes", "result"),
    drop=("refreshes", "files", "type"),
)
_EVERYTHING = "\0"


@click.group(cls=HybridGroup, alone="list")
def flow() -> None:
    """Load files, once or incrementally."""


@flow.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--var", "variables", multiple=True, metavar="name=value", help="A variable of the file.")
@click.option(
    "--full-refresh",
    "refresh",
    is_flag=False,
    flag_value=_EVERYTHING,
    metavar="[NAME]",
    help="Load everything again: of all flows, of the table NAME or the flow NAME.",
)
@click.option("--yes", is_flag=True, help="Accept the full refresh.")
@pass_cli
def run(cli: Cli, file: Path, variables: tuple[str, ...], refresh: str | None, yes: bool) -> int:
    """Run the flows that a Python or SQL file declares: once-flows once, the others what is new."""
    refuse_server(cli, "hybrid flow run", "Run it on the server's machine: hybrid flow run FILE --home DIR")
    require_right(cli, "admin", "'flow run'")
    with dispatcher(cli, may_create=True) as home:  # a flow creates its tables
        session = home.load_flows(file, read_variables(variables, "--var"))
        chosen = [] if refresh is None else session.declaration.chosen(None if refresh == _EVERYTHING else refresh)
        if chosen:
            names = ", ".join(flow_spec.name for flow_spec in chosen)
            confirm(f"Full refresh: take away everything that {names} brought, and load what is there now?", yes)
        reports = home.run_flows(session, chosen)
        for warning in dict.fromkeys(session.declaration.warnings):
            cli.say(f"warning: {warning}")
    for report in reports:
        for warning in report.warnings:
            cli.say(f"warning: {report.flow}: {warning}")
        cli.say(f"{'error: ' if report.state == 'FAILED' else ''}{report.flow}: {report.sentence}")
        if report.hint is not None:
            cli.say(f"hint: {report.hint}")
    if cli.is_machine_read:
        cli.emit([report.to_json() for report in reports])
    return 1 if any(report.state == "FAILED" for report in reports) else 0


@flow.command("list")
@pass_cli
def list_(cli: Cli) -> None:
    """List flows: rows loaded, last run and its result."""
    cli.emit(ask(cli, "flows"), _LISTED, empty="No flow has run yet. Run one with: hybrid flow run FILE")
