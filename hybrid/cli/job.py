"""`hybrid job`: run Pinot's ingestion job specs as replacements."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.dispatch import ask
from hybrid.cli.replacement import os_user, tell_job
from hybrid.errors import UsageError


@click.group(cls=HybridGroup)
def job() -> None:
    """Run an ingestion job spec: load corrected or older data into OFFLINE."""


@job.command()
@click.argument("spec", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--var", "variables", multiple=True, metavar="name=value", help="Fills ${name} in the spec.")
@click.option("--input", "input_dir", metavar="DIR", help="Replaces inputDirURI.")
@click.option("--sql", metavar="SELECT", help="Use the rows of a statement as the input.")
@click.option("--covers", metavar="FROM/TO", help="Remove other segments in this time range; also 'day', 'all'.")
@click.option("--dry-run", is_flag=True, help="Show what would change; change nothing.")
@click.option("--append", is_flag=True, help="Allow a new segment to overlap the times of existing ones.")
@click.option(
    "--expect", multiple=True, metavar="EXPECTATION", help="Condition that the rows must meet; @FILE reads JSON."
)
@click.option("--reason", help="Why; kept with the lineage entry.")
@click.option("--yes", "allow_empty", is_flag=True, help="Accept an empty input.")
@pass_cli
def run(
    cli: Cli,
    /,
    spec: Path,
    variables: tuple[str, ...],
    input_dir: str | None,
    expect: tuple[str, ...],
    **options: Any,
) -> int:
    """Replace offline segments of the same name by a job's rows, or add them, in one commit."""
    options |= {"expect": [read_expectation(text) for text in expect], "user": os_user()}
    return tell_job(cli, run_spec(cli, spec, read_variables(variables, "--var"), input_dir, **options))


def run_spec(
    cli: Cli, spec: Path, variables: Mapping[str, str], input_dir: str | None, **options: object
) -> dict[str, Any]:
    """Run a job spec file locally or on the server and return its report."""
    from hybrid.config.job_document import read_job_file

    folder = spec.absolute().parent
    if input_dir is not None and "://" not in input_dir:
        input_dir = _input_path(input_dir, folder)
    report = ask(
        cli,
        "job_run",
        spec=read_job_file(spec),
        source=str(spec),
        folder=str(folder),
        variables=dict(variables),
        input_dir=input_dir,
        **options,
    )
    assert isinstance(report, dict)
    return report


def _input_path(text: str, folder: Path) -> str:
    """A path as it was typed: from the working folder, which a server does not have, or from the folder of the spec.

    UsageError when there is a file or folder in both places.
    """
    here, beside = Path(text).expanduser().absolute(), folder / text
    if not beside.exists():
        return str(here)
    if here.exists() and not here.samefile(beside):
        raise UsageError(f"--input {text}: it is {beside} or {here}, and both exist.", hint="Write the whole path.")
    return text


def read_expectation(text: str) -> str:
    """The text of one `--expect`. `@FILE` is read here, because a server could not read the file."""
    if not text.startswith("@"):
        return text
    try:
        return Path(text[1:]).expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--expect {text}: the file cannot be read: {error}.") from error


def read_variables(given: tuple[str, ...], option: str) -> dict[str, str]:
    """Parse texts `name=value`; UsageError names the `option` or file of an invalid one."""
    report = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"{option} {text}: write name=value.")
        report[name] = value
    return report
