"""`hybrid admin`: the command lines of Pinot's `pinot-admin.sh`, as recipes write them.

Options have Pinot's single dash (docs.pinot.apache.org, "Command-Line Interface"); host and port of a Pinot controller
are ignored: the server of this home or this process does the work. A password or token is used as `--token`.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.dispatch import ask
from hybrid.cli.job import read_variables, run_spec
from hybrid.cli.replacement import os_user, tell_job
from hybrid.cli.table import tell_creation
from hybrid.errors import UsageError

_FILE = click.Path(dir_okay=False, path_type=Path)
_UNUSED = ("controllerHost", "controllerPort", "controllerProtocol", "user", "authTokenUrl")


def _pinots(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for a Pinot controller."""
    for name in _UNUSED:
        option = click.option(f"-{name}", name, metavar="TEXT", expose_value=False, help="Accepted and ignored.")
        command = option(command)
    for name, meaning in (
        ("password", "Secret of an account."),
        ("authToken", "The same, as Bearer or Basic."),
    ):
        option = click.option(
            f"-{name}", name, metavar="TEXT", expose_value=False, callback=_keep_secret, help=f"{meaning} As --token."
        )
        command = option(command)
    return command


def _keep_secret(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    """Use a Pinot credential as `--token`; an explicit `--token` wins."""
    if value is None:
        return
    scheme, _space, rest = value.strip().partition(" ")
    secret = rest.strip() if scheme.lower() in {"basic", "bearer"} and rest else value
    if scheme.lower() == "basic" and rest:
        try:
            secret = base64.b64decode(secret, validate=True).decode("utf-8").partition(":")[2]
        except ValueError:
            raise UsageError("What follows 'Basic' in -authToken is not base64 of NAME:SECRET.") from None
    Cli.of(ctx).given.setdefault("token", secret)


@click.group(cls=HybridGroup)
def admin() -> None:
    """Run Pinot's admin commands, without the container prefix."""


@admin.command("AddTable")
@click.option("-schemaFile", "schema", required=True, type=_FILE, help="The schema (Pinot's JSON).")
@click.option("-tableConfigFile", "config", type=_FILE, help="A table config.")
@click.option("-realtimeTableConfigFile", "realtime", type=_FILE, help="The REALTIME table config.")
@click.option("-offlineTableConfigFile", "offline", type=_FILE, help="The OFFLINE table config.")
@click.option("-update", "update", is_flag=True, help="Change a half that exists already.")
@click.option("-exec", "execute", is_flag=True, help="Do it; without it the files are only checked.")
@click.option("--kafka", metavar="ADDR", help="Brokers, host:port, instead of the config's.")
@click.option("--set", "overrides", multiple=True, metavar="POINTER=VALUE", help="Change one key of a config.")
@_pinots
@pass_cli
def add_table(
    cli: Cli,
    /,
    schema: Path,
    update: bool,
    execute: bool,
    kafka: str | None,
    overrides: tuple[str, ...],
    **files: Path | None,
) -> None:
    """Create a table from one config, or add the other half to it."""
    from hybrid.config.table_documents import TableDocuments

    configs = [path for name in ("config", "realtime", "offline") if (path := files[name]) is not None]
    if not configs:
        raise UsageError("AddTable needs a table config.", hint="-tableConfigFile FILE")
    documents = TableDocuments.read(schema, configs, kafka, overrides, cli.settings.kafka).to_json()
    if not execute:
        report = ask(cli, "table_validate", documents=documents)
        cli.say(f"Table '{report['table']['name']}' is valid. Nothing was created: add -exec to do it.")
        return
    tell_creation(cli, ask(cli, "table_add", documents=documents, update=update))


@admin.command("LaunchDataIngestionJob")
@click.option("-jobSpecFile", "-jobSpec", "spec", required=True, type=_FILE, help="The ingestion job spec (YAML).")
@click.option("-values", "values", multiple=True, metavar="name=value", help="Fills ${name} in the spec.")
@click.argument("more", nargs=-1, metavar="[name=value]...")
@click.option(
    "-propertyFile",
    "properties",
    type=_FILE,
    help="Lines name=value that fill ${name}.",
)
@click.option("--input", "input_dir", metavar="DIR", help="Replaces inputDirURI.")
@click.option("--append", is_flag=True, help="Allow a new segment to overlap the times of existing ones.")
@click.option("--yes", is_flag=True, help="Accept an empty input.")
@_pinots
@pass_cli
def launch_job(
    cli: Cli,
    spec: Path,
    values: tuple[str, ...],
    more: tuple[str, ...],
    properties: Path | None,
    input_dir: str | None,
    append: bool,
    yes: bool,
) -> int:
    """Run an ingestion job spec, as `hybrid job run` does."""
    file_variables = _properties(properties)
    # Between file and -values, as in Pinot.
    of_environment = {name: os.environ[name] for name in file_variables if name in os.environ}
    variables = {**file_variables, **of_environment, **read_variables((*values, *more), "-values")}
    options = {"dry_run": False, "append": append, "allow_empty": yes, "reason": None, "user": os_user()}
    return tell_job(cli, run_spec(cli, spec, variables, input_dir, **options))


def _properties(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"-propertyFile {path}: the file cannot be read: {error}.") from error
    entries = tuple(line.strip() for line in lines if line.strip() and not line.lstrip().startswith(("#", "!")))
    return read_variables(entries, str(path))
