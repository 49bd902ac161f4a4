"""`hybrid job`: run Pinot's ingestion job specs as replacements."""

from __future__ import annotations

from pathlib import Path

import click

from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.opened import opened
from hybrid.cli.replacement import os_user, tell_job
from hybrid.errors import UsageError


@click.group(cls=HybridGroup)
def job() -> None:
    """Put corrected or older data into the OFFLINE half."""


@job.command()
@click.argument("spec", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--var", "variables", multiple=True, metavar="name=value", help="Fills ${name} in the spec.")
@click.option("--input", "input_dir", metavar="DIR", help="Stands in for inputDirURI.")
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@click.option("--append", is_flag=True, help="A new segment may overlap the times of those that are there.")
@click.option("--reason", help="Why; kept with the lineage entry.")
@click.option("--yes", is_flag=True, help="An empty input is meant.")
@pass_cli
def run(
    cli: Cli,
    spec: Path,
    variables: tuple[str, ...],
    input_dir: str | None,
    dry_run: bool,
    append: bool,
    reason: str | None,
    yes: bool,
) -> None:
    """Put a job's rows in place of offline segments of the same name, or add them, in one swap."""
    options = {"dry_run": dry_run, "append": append, "allow_empty": yes, "reason": reason, "user": os_user()}
    with opened(cli) as home:
        tell_job(cli, home.run_job(spec, _variables(variables), input_dir=input_dir, **options))


def _variables(given: tuple[str, ...]) -> dict[str, str]:
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--var {text}: write name=value.")
        found[name] = value
    return found
