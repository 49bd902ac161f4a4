"""`hybrid table`: create, change and look at tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from hybrid.cli.cells import View
from hybrid.cli.command import Cli, HybridGroup, pass_cli
from hybrid.cli.dispatch import ask, confirm, tell
from hybrid.cli.table_init import JSON_CONTROL, infer, show_inference
from hybrid.errors import NotFoundError, UsageError

_LISTED = View(
    ("name", "halves", "time_column", "primary_key", "topic", "brokers", "bytes"),
    drop=("brokers", "primary_key", "time_column"),
)
_DROPPED = View(("name", "dropped_at", "rows", "bytes", "state"), drop=("state",))
_DURATIONS = ("bucket", "buffer", "round", "revert_window", "retention")
_NONE_DROPPED = "No dropped table is kept. One is, after: hybrid table drop TABLE"
_FILE = click.Path(dir_okay=False, path_type=Path)


def _file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option("--set", "overrides", multiple=True, metavar="POINTER=VALUE", help="Change one key of a config."),
        click.option("--kafka", metavar="ADDR", help="Brokers, host:port, instead of the config's."),
        click.option("-f", "--file", "ddl", type=_FILE, help="CREATE TABLE statements, or an export (.json)."),
        click.option("--config", "configs", multiple=True, type=_FILE, help="A table config (Pinot's JSON)."),
        click.option("--schema", type=_FILE, help="The schema (Pinot's JSON)."),
    ):
        command = option(command)
    return command


@click.group(cls=HybridGroup, alone="list", named="show")
def table() -> None:
    """Create, change, inspect and drop tables."""


@table.command()
@click.argument("source", metavar="SOURCE")
@click.option("--name", metavar="TABLE", help="Name of the table (default: that of the topic or file).")
@click.option("--kafka", metavar="ADDR", help="Brokers of the topic, host:port (default: the local one).")
@click.option("--registry", metavar="URL", help="Messages are Avro with a schema registry at URL.")
@click.option("--stream-config", "stream_configs", multiple=True, metavar="KEY=VALUE", help="Entry of streamConfigs.")
@click.option("--key", multiple=True, metavar="COLUMN,...", help="Primary key: newer rows replace older ones.")
@click.option("--time", "time_column", metavar="COLUMN", help="The time column (default: the likeliest).")
@click.option("--no-time", "without_time", is_flag=True, help="A table without a time column.")
@click.option("--bucket", metavar="PERIOD", help="Length of a bucket, such as 1d (default: by the sample's span).")
@click.option(
    "--sample", type=click.IntRange(0), default=10_000, show_default=True, help="Records to read; 0: all of a file."
)
@click.option(
    "--file-format",
    "data_format",
    type=click.Choice(["json", "csv", "parquet", "avro", "orc"]),
    help="Format of a file (default: by its name).",
)
@click.option("--topic", metavar="TOPIC", help="For a file: a topic whose messages have the same fields.")
@click.option("--ddl", is_flag=True, help="Print a CREATE TABLE statement.")
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write files into DIR; existing ones are not replaced.",
)
@pass_cli
def init(cli: Cli, /, source: str, folder: Path | None, **given: Any) -> None:
    """Infer the documents of a table from a Kafka topic or a file, and print them. SOURCE is a topic or a file."""
    show_inference(cli, infer(cli, source, given), folder)


@table.command()
@_file_options
@pass_cli
def create(cli: Cli, /, **given: Any) -> None:
    """Create a table from a schema and its table configs, or tables from DDL. Each half has a config."""
    for documents in _documents(cli, given):
        tell_creation(cli, ask(cli, "table_create", documents=documents))


@table.command()
@_file_options
@click.option("--dry-run", is_flag=True, help="Show the difference; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask, when a config names other brokers than before.")
@pass_cli
def apply(cli: Cli, /, dry_run: bool, yes: bool, **given: Any) -> None:
    """Create or change a table, and show the difference."""
    for documents in _documents(cli, given):
        if not (dry_run or yes or given["kafka"]):
            _confirm_brokers(cli, documents)
        tell_creation(cli, ask(cli, "table_apply", documents=documents, dry_run=dry_run))


@table.command()
@_file_options
@pass_cli
def validate(cli: Cli, /, **given: Any) -> None:
    """Validate the files of a table, without any change or request."""
    for documents in _documents(cli, given):
        report = ask(cli, "table_validate", documents=documents)
        for warning in report["warnings"]:
            cli.say(f"warning: {warning}")
        cli.say(f"Table '{report['table']['name']}' is valid.")
        if cli.is_machine_read:
            cli.emit(report["table"])


@table.command("list")
@click.option("--dropped", is_flag=True, help="List the dropped tables that are kept instead.")
@pass_cli
def list_(cli: Cli, dropped: bool) -> None:
    """List tables."""
    if dropped:
        copies = ask(cli, "table_dropped")
        cli.emit(copies, None if cli.is_machine_read else _DROPPED, empty=_NONE_DROPPED)
        whole = [copy["name"] for copy in copies if copy["state"] == "DROPPED"]
        if whole and cli.is_terminal:
            cli.say(f"To restore one: hybrid table undrop {whole[-1]}")
        if copies and cli.is_terminal:
            cli.say(f"To delete one for good: hybrid table drop {copies[-1]['name']} --purge")
        return
    empty = "No tables yet. Try: hybrid demo orders, or hybrid table create --help"
    cli.emit(ask(cli, "table_list", sizes=True), _LISTED, empty=empty)


@table.command()
@click.argument("name", metavar="TABLE")
@pass_cli
def show(cli: Cli, name: str) -> None:
    """Show a table: its columns and settings."""
    details = ask(cli, "table_show", table=name)
    cli.emit(_with_periods(details) if cli.is_terminal else details)


def _with_periods(details: dict[str, Any]) -> dict[str, Any]:
    """The details of a table with durations as a table config has them: `bucket` 1d, not `bucket_ms` 86400000."""
    shown: dict[str, Any] = {}
    for key, value in details.items():
        name = key.removesuffix("_ms")
        if key != name and name in _DURATIONS:
            by_half = isinstance(value, dict)
            shown[name] = {half: _period(ms) for half, ms in value.items()} if by_half else _period(value)
        elif isinstance(value, dict) and key == "move":
            shown[key] = _with_periods(value)
        elif isinstance(value, list) and key == "merge_levels":
            shown[key] = [_with_periods(level) for level in value]
        else:
            shown[key] = value
    return shown


def _period(millis: int | None) -> str | None:
    from hybrid.schema.period import period_text

    return None if millis is None else period_text(millis)


@table.command()
@click.argument("name", metavar="TABLE")
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write a file for the schema and for each config.",
)
@pass_cli
def export(cli: Cli, name: str, folder: Path | None) -> None:
    """Print the current documents of a table, as `hybrid table apply` takes them."""
    from hybrid.operations.tables.export import write_export

    report = ask(cli, "table_export", table=name)
    for place in report["hidden"]:
        cli.say(f"warning: {place} is a secret and is left out. Put a reference there, or give it with --set.")
    if folder is None:
        click.echo(json.dumps(report["documents"], indent=2, ensure_ascii=False).translate(JSON_CONTROL))
        return
    files = [str(path) for path in write_export(report["documents"], folder)]
    tell(cli, {"table": report["table"], "files": files, "sentence": f"Wrote {', '.join(files)}."})


@table.command()
@click.argument("name", metavar="TABLE")
@click.option(
    "--for",
    "engine",
    required=True,
    type=click.Choice(["spark", "duckdb", "polars"]),
    help="The engine that runs the code.",
)
@click.option("--as-of", metavar="REVISION|TIME", help="Not the newest commits: an answer's revision, or a time.")
@pass_cli
def view(cli: Cli, name: str, engine: str, as_of: str | None) -> None:
    """Print Python code that reads a table at one revision without this product."""
    report = ask(cli, "table_view", table=name, engine=engine, as_of=as_of)
    if cli.is_machine_read:
        cli.emit(report)
    else:
        click.echo(report["code"], nl=False)


@table.command()
@click.argument("name", metavar="TABLE[@TIME]")
@click.option("--purge", is_flag=True, help="Delete the data for good; else it is kept aside.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_cli
def drop(cli: Cli, name: str, purge: bool, yes: bool) -> None:
    """Drop a table; it can be restored unless it is purged. TABLE@TIME purges a dropped copy."""
    copies = ask(cli, "table_copies", table=name) if purge else []
    exists = "@" not in name and (not copies or name in {listed["name"] for listed in ask(cli, "table_list")})
    if exists or not copies:
        ask(cli, "table_show", table=name)  # report a wrong name before asking for confirmation
    if purge:
        confirm(_purge_question(name, copies, exists=exists), yes)
    tell(cli, {"table": name, **ask(cli, "table_drop", table=name, purge=purge)})


def _purge_question(name: str, copies: list[str], *, exists: bool) -> str:
    """The question that names what goes for good."""
    words = ", ".join(copies)
    if not exists:
        return f"Delete these dropped copies of table '{name.partition('@')[0]}' for good: {words}?"
    also = f", also the copies that were dropped before: {words}" if copies else ""
    return f"Delete table '{name}' and all its data for good{also}?"


@table.command()
@click.argument("name", metavar="TABLE[@TIME]")
@pass_cli
def undrop(cli: Cli, name: str) -> None:
    """Restore the table of that name that was dropped last, or an older copy by its name."""
    tell(cli, {"table": name, **ask(cli, "table_undrop", table=name)})


def _confirm_brokers(cli: Cli, documents: dict[str, Any]) -> None:
    """Ask for confirmation before an edited config changes a table's brokers."""
    from hybrid.operations.tables.change import BROKERS_CHANGE

    planned = ask(cli, "table_apply", documents=documents, dry_run=True)
    for change in planned["changes"]:
        if change.startswith(BROKERS_CHANGE):
            brokers = change.removeprefix(BROKERS_CHANGE)
            confirm(f"Table '{planned['table']}' is to read from other brokers: {brokers}. Go on?", yes=False)


def _documents(cli: Cli, given: dict[str, Any]) -> list[dict[str, Any]]:
    """The documents of each table on the command line."""
    from hybrid.config.table_documents import TableDocuments

    kafka, overrides, default = given["kafka"], given["overrides"], cli.settings.kafka
    ddl, schema, configs = given["ddl"], given["schema"], given["configs"]
    if ddl is not None and (schema is not None or configs):
        raise UsageError("-f describes tables whole: leave --schema and --config out.")
    for path in (ddl, schema, *configs):
        if path is not None and not path.exists():
            raise NotFoundError(f"File '{path}' does not exist.")
    if ddl is None and (schema is None or not configs):
        missing = "Both are" if schema is None and not configs else f"--{'config' if schema else 'schema'} FILE is"
        raise UsageError(f"A table is described by --schema and --config, or by -f DDL.sql. {missing} missing.")
    if ddl is not None and ddl.suffix.lower() == ".json":
        return [TableDocuments.from_export(ddl, kafka, overrides, default).to_json()]
    if ddl is None:
        return [TableDocuments.read(schema, configs, kafka, overrides, default).to_json()]
    report = TableDocuments.from_ddl(ddl, kafka, overrides, default)
    for warning in (warning for declaration in report for warning in declaration.warnings):
        cli.say(f"warning: {warning}")
    return [declaration.documents.to_json() for declaration in report]


def tell_creation(cli: Cli, made: dict[str, Any]) -> None:
    """Print the warnings, changes and sentence of a creation; the whole report in a format for programs."""
    for warning in made["warnings"]:
        cli.say(f"warning: {warning}")
    for change in made["changes"]:
        cli.say(f"  {change}")
    cli.say(made["sentence"])
    if cli.is_machine_read:
        cli.emit(made)
