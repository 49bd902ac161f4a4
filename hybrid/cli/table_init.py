"""What `hybrid table init` prints: the documents on stdout, and what to check on stderr."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from hybrid.cli.cells import CONTROL, CellKind, View
from hybrid.cli.command import Cli
from hybrid.cli.dispatch import ask
from hybrid.errors import UsageError

JSON_CONTROL = {code: f"\\u{code:04x}" for code in CONTROL if code > 126}  # JSON escapes the others itself
_COLUMNS = View(
    ("column", "type", "format", "null", "distinct", "samples"),
    drop=("distinct",),
    kinds={
        "column": CellKind.PLAIN,
        "type": CellKind.STATE,
        "format": CellKind.PLAIN,
        "null": CellKind.PLAIN,
        "distinct": CellKind.COUNT,
        "samples": CellKind.PROSE,
    },
)


def infer(cli: Cli, source: str, given: dict[str, Any]) -> dict[str, Any]:
    """The inference in its JSON form. Files are read here; a topic is read by the server where there is one."""
    from hybrid.operations.inference.infer import infer_file, is_file
    from hybrid.operations.inference.infer_options import InferOptions

    options = {**given, "key": _names(given["key"]), "stream_configs": _entries(given["stream_configs"])}
    if is_file(source):
        return infer_file(Path(source), InferOptions(**options)).to_json()
    sent = {name: value for name, value in options.items() if value not in (None, (), [])}
    report: dict[str, Any] = ask(cli, "table_infer", source=source, **sent)
    return report


def show_inference(cli: Cli, report: dict[str, Any], folder: Path | None) -> None:
    """Print an inference, or write its files. ConflictError, before writing, when a file exists."""
    from hybrid.operations.inference.inferred_table import sentence_of, write_inferred

    files = write_inferred(report, folder) if folder is not None else []
    if cli.is_machine_read:
        cli.emit({**report, "files": [str(path) for path in files]})
        return
    cli.emit([_row(column, report["records"]) for column in report["columns"]], _COLUMNS, stream=sys.stderr)
    cli.say(sentence_of(report))
    for note in report["notes"]:
        cli.say(f"- {note}")
    if files:
        cli.say(f"Wrote {', '.join(map(str, files))}. Next:")
        for command in _next_commands(files):
            cli.say(f"  {command}")
    elif report["ddl"] is not None:
        click.echo(report["ddl"].translate(_SQL_CONTROL), nl=False)
    else:
        documents = json.dumps(report["documents"], indent=2, ensure_ascii=False)
        click.echo(documents.translate(JSON_CONTROL))


# Names of columns and paths hold none that matter; a terminal gets no sequence from a comment.
_SQL_CONTROL = {code: shown for code, shown in CONTROL.items() if code != 10}


def _row(column: dict[str, Any], records: int) -> dict[str, Any]:
    share = column["nulls"] / records if records else 0.0
    return {
        "column": column["name"],
        "type": column["type"] or "left out",
        "format": column["time_format"] or "",
        "null": f"{share:.1%}" if column["nulls"] else "",
        "distinct": column["distinct"],
        "samples": ", ".join(column["samples"]),
    }


def _next_commands(files: list[Path]) -> list[str]:
    """The commands that take the files as they are."""
    by_ending = {ending: [path for path in files if path.name.endswith(ending)] for ending in (".sql", ".yml")}
    if by_ending[".sql"]:
        return [f"hybrid table create -f {shlex.quote(str(by_ending['.sql'][0]))}"]
    schema, *configs = [path for path in files if path.suffix == ".json"]
    words = [f"--config {shlex.quote(str(path))}" for path in configs]
    create = f"hybrid table create --schema {shlex.quote(str(schema))} {' '.join(words)}"
    return [create, *(f"hybrid job run {shlex.quote(str(path))}" for path in by_ending[".yml"])]


def _names(texts: tuple[str, ...]) -> list[str]:
    return [name.strip() for text in texts for name in text.split(",") if name.strip()]


def _entries(texts: tuple[str, ...]) -> dict[str, str] | None:
    """KEY=VALUE texts as entries; None without any."""
    for text in texts:
        if "=" not in text.strip("="):
            raise UsageError(f"--stream-config is written KEY=VALUE, and '{text.partition('=')[0]}' is not.")
    return dict(text.split("=", 1) for text in texts) or None
