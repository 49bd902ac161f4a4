"""`hybrid table`: create, change and look at tables."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.opened import confirm, opened

if TYPE_CHECKING:
    from hybrid.api import Creation, TableFiles
    from hybrid.spec.table_config import TableSpec

_FILE = click.Path(dir_okay=False, path_type=Path)


def _file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--set", "overrides", multiple=True, metavar="POINTER=VALUE", help="Change one key of a config."),
        click.option("--kafka", metavar="ADDR", help="Brokers, host:port, instead of the config's."),
        click.option(
            "--config", "configs", multiple=True, required=True, type=_FILE, help="A table config (Pinot's JSON)."
        ),
        click.option("--schema", required=True, type=_FILE, help="The schema (Pinot's JSON)."),
    ):
        command = option(command)
    return command


@click.group(cls=HybridGroup)
def table() -> None:
    """Create, change and look at tables."""


@table.command()
@_file_options
@pass_cli
def create(cli: Cli, /, **given: Any) -> None:
    """Create a table from a schema and its REALTIME and OFFLINE table configs."""
    with opened(cli) as home:
        _tell(cli, home.create_table(_files(given)))


@table.command()
@_file_options
@pass_cli
def apply(cli: Cli, /, **given: Any) -> None:
    """Create a table, or change the one there is; shows the difference."""
    with opened(cli) as home:
        _tell(cli, home.apply_table(_files(given)))


@table.command()
@_file_options
@pass_cli
def validate(cli: Cli, /, **given: Any) -> None:
    """Check the files of a table. Nothing is written, nobody is asked."""
    with opened(cli) as home:
        spec = home.validate(_files(given))
    for warning in spec.warnings:
        cli.say(f"warning: {warning}")
    cli.say(f"Table '{spec.name}' is valid.")
    if cli.is_machine_read:
        cli.emit(_described(spec))


@table.command("list")
@pass_cli
def list_(cli: Cli) -> None:
    """All tables."""
    with opened(cli) as home:
        rows = [_described(home.spec(name)) for name in home.table_names()]
    cli.emit(rows, ["name", "halves", "time_column", "primary_key", "topic", "brokers"])


@table.command()
@click.argument("name", metavar="TABLE")
@pass_cli
def show(cli: Cli, name: str) -> None:
    """One table: its columns and settings."""
    with opened(cli) as home:
        spec = home.spec(name)
    columns = {field.name: f"{field.data_type}{'' if field.single_value else '[]'}" for field in spec.schema.fields}
    move = spec.move
    task = {"bucket_ms": move.bucket_ms, "buffer_ms": move.buffer_ms, "merge": move.merge_type.value} if move else None
    cli.emit({**_described(spec), "columns": columns, "move": task})


@table.command()
@click.argument("name", metavar="TABLE")
@click.option("--purge", is_flag=True, help="Delete the data for good; else it is kept aside.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_cli
def drop(cli: Cli, name: str, purge: bool, yes: bool) -> None:
    """Drop a table; it can be brought back unless it is purged."""
    with opened(cli) as home:
        home.spec(name)
        if purge:
            confirm(f"Delete table '{name}' and all its data for good?", yes)
        cli.say(home.drop_table(name, purge=purge))


@table.command()
@click.argument("name", metavar="TABLE")
@pass_cli
def undrop(cli: Cli, name: str) -> None:
    """Bring back the table of that name that was dropped last."""
    with opened(cli) as home:
        cli.say(home.undrop_table(name))


def _files(given: dict[str, Any]) -> TableFiles:
    from hybrid.api import TableFiles

    return TableFiles(given["schema"], given["configs"], given["kafka"], given["overrides"])


def _tell(cli: Cli, made: Creation) -> None:
    for warning in made.warnings:
        cli.say(f"warning: {warning}")
    for change in made.changes:
        cli.say(f"  {change}")
    cli.say(made.sentence)
    if cli.is_machine_read:
        cli.emit(vars(made))


def _described(spec: TableSpec) -> dict[str, object]:
    return {
        "name": spec.name,
        "halves": [half.value for half in sorted(spec.halves, reverse=True)],
        "time_column": spec.time_column,
        "primary_key": list(spec.primary_key),
        "topic": spec.stream.topic if spec.stream else None,
        "brokers": spec.stream.brokers if spec.stream else None,
    }
