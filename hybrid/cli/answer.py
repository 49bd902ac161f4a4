"""Prints the answer to a statement, and how one would be answered."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, TextIO

import click

from hybrid.cli.cells import CellKind, View, printable
from hybrid.cli.command import Cli
from hybrid.files.results.result_format import distinct_names

_EXPLAIN = re.compile(r"\bexplain\s+plan\s+for\b", re.IGNORECASE)


def show_answer(cli: Cli, statement: str, result: dict[str, Any], stream: TextIO | None = None) -> None:
    """Print warnings on stderr, and the rows on stdout or `stream`."""
    for warning in result["warnings"]:
        cli.say(f"warning: {warning}")
    names = distinct_names(result["columns"])
    if cli.is_terminal and _is_explained(statement, result):
        _show_tree(result["rows"], stream)
        return
    rows, view = result["rows"], View(tuple(names), kinds={})
    if cli.is_terminal and not cli.is_wide:
        from hybrid.cli.terminal.readable import number

        types = result["types"]
        rows = [[number(*pair) for pair in zip(row, types, strict=True)] for row in rows]
        times = [name for name, data_type in zip(names, types, strict=True) if data_type == "TIMESTAMP"]
        view = View(tuple(names), kinds=dict.fromkeys(times, CellKind.TIME))
    cli.emit([dict(zip(names, row, strict=True)) for row in rows], view, stream=stream)


def show_plan(cli: Cli, explanation: dict[str, Any], stream: TextIO | None = None) -> None:
    """Print the explanation of a statement, on stdout or `stream`."""
    if cli.is_machine_read:
        cli.emit(explanation["plan"], stream=stream)
        return
    if cli.is_terminal:
        _show_tree(explanation["lines"], stream)
        return
    for subject, text in explanation["lines"]:
        click.echo(printable(f"{subject}: {text}"), file=stream or sys.stdout)


def _show_tree(lines: Sequence[Sequence[str]], stream: TextIO | None) -> None:
    from hybrid.cli.terminal.show import show_explanation

    show_explanation(lines, stream or sys.stdout)


def _is_explained(statement: str, result: dict[str, Any]) -> bool:
    """Whether the rows are those of EXPLAIN PLAN FOR: the server parses the statement, so the columns decide too."""
    return result["columns"] == ["Subject", "Plan"] and _EXPLAIN.search(statement) is not None
