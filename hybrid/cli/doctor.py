"""`hybrid doctor`: diagnose a home, and repair what is safe to repair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hybrid.cli.cells import printable
from hybrid.cli.command import FINDINGS, Cli, HybridCommand, pass_cli
from hybrid.cli.dispatch import dispatcher, refuse_server, require_right
from hybrid.errors import SpecError, UsageError

if TYPE_CHECKING:
    from hybrid.doctor.findings import Finding
    from hybrid.store.store_probe import StoreCheck

_KEYS = ("check", "table", "severity", "message", "hint", "repair")
_STORE_KEYS = ("check", "verdict", "seen", "hint")
_PATIENCE_S = 10.0  # a person waits to hear that a store cannot be reached


@click.command(cls=HybridCommand)
@click.argument("name", metavar="[TABLE]", required=False)
@click.option("--repair", is_flag=True, help="Repair what is safe to repair; data is never touched.")
@click.option(
    "--store", metavar="URL", help="Check an object store instead: is s3://bucket/prefix fit to hold a warehouse?"
)
@pass_cli
def doctor(cli: Cli, name: str | None, repair: bool, store: str | None) -> int:
    """Check this home, or one table: files, logs, states, Kafka. Exit code 3 when something is left to do."""
    if store is not None:
        return _probe(cli, store, name, repair)
    findings = _findings(cli, name, repair)
    if cli.is_machine_read:
        cli.emit([{key: getattr(finding, key) for key in _KEYS} for finding in findings], _KEYS)
    else:
        for finding in findings:
            click.echo(_text(finding))
    cli.say(_sentence(findings))
    return FINDINGS if any(finding.is_left for finding in findings) else 0


def _findings(cli: Cli, name: str | None, repair: bool) -> Sequence[Finding]:
    from hybrid.doctor.examine import examine
    from hybrid.doctor.findings import Finding, Severity

    try:
        cli.say(f"home: {cli.settings.home}")
    except SpecError as error:  # nothing can be checked without: where tables lie follows from the settings
        return [Finding("settings", None, Severity.ERROR, str(error), error.hint)]
    refuse_server(cli, "hybrid doctor", "Run it on the server's machine: hybrid doctor --home DIR")
    require_right(cli, "admin" if repair else "read", "'doctor'")
    with dispatcher(cli) as home:
        return examine(home, name, repair=repair)


def _probe(cli: Cli, url: str, name: str | None, repair: bool) -> int:
    """Check an object store from this machine, and print a line for each property of it."""
    if name is not None or repair:
        raise UsageError("--store takes neither a table nor --repair.", hint="hybrid doctor --store s3://bucket/prefix")
    refuse_server(
        cli, "hybrid doctor --store", "Leave --server away: this machine's access is checked.", flag_only=True
    )
    from hybrid.store.store_backend import StoreTuning
    from hybrid.store.store_client import open_store
    from hybrid.store.store_probe import is_fit, probe_store

    client = open_store(url, StoreTuning(patience_s=_PATIENCE_S))
    shown = client.location.url
    cli.say(f"Checking {shown} below a prefix of its own, which is removed afterwards.")
    checks = probe_store(client)
    if cli.is_machine_read:
        cli.emit([{key: getattr(check, key) for key in _STORE_KEYS} for check in checks], _STORE_KEYS)
    else:
        for check in checks:
            click.echo(_store_text(check))
    fit = is_fit(checks)
    cli.say(f"{shown} is {'fit' if fit else 'not fit'} to hold a warehouse.")
    return 0 if fit else FINDINGS


def _store_text(check: StoreCheck) -> str:
    lines = [f"{check.verdict}: {check.check}: {check.seen}"]
    if check.hint is not None:
        lines.append(f"    hint: {check.hint}")
    return "\n".join(map(printable, lines))


def _text(finding: Finding) -> str:
    where = f"{finding.table}: " if finding.table else ""
    lines = [f"{finding.severity}: {where}{finding.check}: {finding.message}"]
    if finding.repair is not None:
        lines.append(f"    repaired: {finding.repair}")
    elif finding.hint is not None:
        lines.append(f"    hint: {finding.hint}")
    return "\n".join(map(printable, lines))


def _sentence(found: Sequence[Finding]) -> str:
    if not found:
        return "Nothing was found: all is well."
    counts = Counter(str(finding.severity) for finding in found if finding.repair is None)
    repaired = sum(finding.repair is not None for finding in found)
    parts = [f"{counts[word]} {word}{'' if counts[word] == 1 else 's'}" for word in ("error", "warning", "note")]
    return f"{', '.join(parts)}; {repaired} repaired."
