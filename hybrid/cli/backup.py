"""`hybrid backup`: back up a home while it is used, and restore it as a new one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from hybrid.cli.cells import View
from hybrid.cli.command import FINDINGS, Cli, HybridGroup, pass_cli
from hybrid.cli.dispatch import ask, confirm, refuse_server, require_right, tell

_LISTED = View(
    ("id", "state", "created_at", "tables", "files", "bytes", "home", "result"), drop=("home", "result", "tables")
)
_TABLES = View(("table", "revision"))
_DAMAGE = View(("kind", "path", "file", "backups"))


@click.group(cls=HybridGroup)
def backup() -> None:
    """Back up a home while it is used, and restore a backup as a new home."""


@backup.command()
@click.argument("directory", metavar="DIR")
@click.option("--table", "tables", metavar="TABLE", multiple=True, help="Only this table; may be repeated.")
@pass_cli
def create(cli: Cli, directory: str, tables: tuple[str, ...]) -> None:
    """Back up the home; copy only files that DIR lacks. It holds tables, definitions, plans, catalog and accounts."""
    report = ask(cli, "backup_create", directory=_absolute(directory), tables=list(tables) or None)
    tell(cli, report)
    if not cli.is_machine_read:
        cli.emit([{"table": name, "revision": text} for name, text in report["tables"].items()], _TABLES)
    _say_left_out(cli, report["left_out"])


@backup.command("list")
@click.argument("directory", metavar="DIR")
@pass_cli
def list_(cli: Cli, directory: str) -> None:
    """List the backups in DIR, newest first."""
    from hybrid.operations.backups.backups import list_backups, notes_on

    _check(cli, "list")
    empty = f"There is no backup in {directory}. To make one: hybrid backup create {directory}"
    found = [summary.to_json() for summary in list_backups(Path(_absolute(directory)))]
    cli.emit(found, _LISTED, empty=empty)
    for note in notes_on(Path(_absolute(directory))):
        cli.say(note)


@backup.command()
@click.argument("directory", metavar="DIR")
@click.argument("backup_id", metavar="ID", required=False)
@pass_cli
def verify(cli: Cli, directory: str, backup_id: str | None) -> int:
    """Read every byte of a backup, or of all in DIR, and compare checksums. Exit code 3: damage."""
    from hybrid.operations.backups.backup_verify import verify_backups

    _check(cli, "verify")
    report = verify_backups(Path(_absolute(directory)), backup_id, cli.progress)
    tell(cli, report.to_json())
    if not cli.is_machine_read and report.findings:
        cli.emit([vars(finding) for finding in report.findings], _DAMAGE)
    return 0 if report.sound else FINDINGS


@backup.command()
@click.argument("directory", metavar="DIR")
@click.argument("backup_id", metavar="ID", required=False)
@click.option("--table", "tables", metavar="TABLE", multiple=True, help="Only this table; may be repeated.")
@pass_cli
def restore(cli: Cli, directory: str, backup_id: str | None, tables: tuple[str, ...]) -> None:
    """Restore a backup, by default the newest whole one, as the new home that --home names."""
    from hybrid.cli.dispatch import dispatcher

    refuse_server(cli, "hybrid backup restore", "Run it on the machine of the new home.", flag_only=True)
    if "home" not in cli.given:
        raise click.UsageError("A backup is restored into a new home: name it with --home DIR.")
    with dispatcher(cli, may_create=True) as home:
        report = home.backups.restore(_absolute(directory), backup_id, list(tables) or None)
    tell(cli, report.to_json())
    _say_left_out(cli, report.left_out)


@backup.command()
@click.argument("directory", metavar="DIR")
@click.argument("backup_id", metavar="ID", required=False)
@click.option("--surplus", is_flag=True, help="Delete only files that no backup needs, and no backup.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@pass_cli
def delete(cli: Cli, directory: str, backup_id: str | None, surplus: bool, yes: bool) -> None:
    """Delete a backup, and the files that no other backup in DIR needs."""
    from hybrid.operations.backups.backup_delete import delete_backup, delete_surplus

    if (backup_id is None) is not surplus:
        raise click.UsageError("Name the backup to delete, or --surplus for what no backup needs; not both.")
    _check(cli, "delete")
    folder = Path(_absolute(directory))
    if backup_id is None:
        report = delete_surplus(folder, cli.progress)
    else:
        confirm(f"Delete backup '{backup_id}' in {directory}? It cannot be taken back.", yes)
        report = delete_backup(folder, backup_id, cli.progress)
    tell(cli, vars(report))


def _say_left_out(cli: Cli, left_out: Sequence[str]) -> None:
    """What belongs to no backup is no fault of this one: it is said, and not warned of."""
    if not cli.is_machine_read:
        for what in left_out:
            cli.say(f"Not in the backup: {what}.")


def _absolute(directory: str) -> str:
    """The directory for whichever process does the work."""
    return str(Path(directory).expanduser().absolute())


def _check(cli: Cli, verb: str) -> None:
    refuse_server(cli, f"hybrid backup {verb}", "Leave --server out: DIR is a folder of this machine.", flag_only=True)
    require_right(cli, "admin", f"'backup {verb}'")
