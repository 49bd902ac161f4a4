"""The state of a shell, and how it runs statements: against the home or the server that the command line names."""

from __future__ import annotations

import re
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, TextIO

from hybrid.cli.answer import show_answer, show_plan
from hybrid.cli.command import Cli
from hybrid.cli.dispatch import ask, ask_statement, statement_arguments
from hybrid.cli.shell.pager import paged
from hybrid.cli.shell.statements import without_comments
from hybrid.errors import HybridError, UsageError
from hybrid.progress import counted

_SET = re.compile(r"set\s+(?P<name>\w+)\s*=\s*(?P<value>.+)", re.IGNORECASE | re.DOTALL)
_RESET = re.compile(r"reset\s+(?P<name>\w+)", re.IGNORECASE)
_EVERYTHING = "all"


@dataclass
class Output:
    """The file that the rows of the next statement go to."""

    path: str
    force: bool = False


@dataclass
class ShellOptions:
    """What dot commands switch. `has_timing`: the time of each statement is shown."""

    has_timing: bool = True
    has_revision: bool = False
    has_pager: bool = True
    as_of: str | None = None
    output: Output | None = None
    set_options: dict[str, str] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)


class ShellSession:
    """Runs statements one by one. `is_interactive`: a person reads the results on a terminal as they come."""

    def __init__(self, cli: Cli, *, is_interactive: bool, as_of: str | None = None) -> None:
        self.cli, self.is_interactive = cli, is_interactive
        self.options = ShellOptions(has_timing=is_interactive, as_of=as_of)
        self.last_statement: str | None = None
        self.last_revision: str | None = None
        self.files_open = 0  # files of .read that read each other

    def run(self, sql: str) -> None:
        """Run a statement, or keep what SET and RESET say. Raises its error."""
        if not self._keeps_option(sql):
            self.last_statement = sql
            self.run_statement(sql)

    def run_statement(self, sql: str) -> None:
        """Run a statement and show its rows, or write them to the file of `.output`."""
        statement = self._with_options(sql)
        if self.options.output is not None:
            self._export(statement, self.options.output, self._parameters(sql))
            return
        started = time.monotonic()
        result = ask_statement(self.cli, statement, self.options.as_of, self._parameters(sql))
        took_s = time.monotonic() - started
        self.last_revision = result["revision"]
        with self.results() as stream:
            show_answer(self.cli, sql, result, stream)
        self._report(len(result["rows"]), took_s)

    def explain(self, sql: str) -> None:
        """Show how a statement would be answered."""
        arguments = statement_arguments(self._with_options(sql), self.options.as_of, self._parameters(sql))
        plan = ask(self.cli, "explain", **arguments)
        with self.results() as stream:
            show_plan(self.cli, plan, stream)

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Call a verb of the home or server."""
        return ask(self.cli, verb, **arguments)

    def results(self) -> AbstractContextManager[TextIO]:
        """Where results go: stdout, through the pager where they are longer than the terminal."""
        return paged(is_enabled=self.is_interactive and self.options.has_pager, is_wide=self.cli.is_wide)

    def prompt(self) -> str:
        """What is shown before a statement: the options that change what it does."""
        moment = f" (as of {self.options.as_of})" if self.options.as_of else ""
        target = f" ({self.options.output.path})" if self.options.output else ""
        return f"hybrid{moment}{target}> "

    def _with_options(self, sql: str) -> str:
        """The statement with the options of SET behind it, where they change no position that an error names."""
        return "\n;\n".join([sql, *(f"SET {name} = {value}" for name, value in self.options.set_options.items())])

    def _keeps_option(self, sql: str) -> bool:
        """Whether the text is SET or RESET, which hold for the statements after it."""
        options = self.options.set_options
        words = without_comments(sql)
        setting, resetting = _SET.fullmatch(words), _RESET.fullmatch(words)
        if setting is not None:
            options.pop(setting["name"].lower(), None)
            options[setting["name"].lower()] = setting["value"].strip()
            return True
        if resetting is None:
            return False
        name = resetting["name"].lower()
        if name == _EVERYTHING:
            options.clear()
        elif options.pop(name, None) is None:
            raise UsageError(f"No option '{name}' is set here.", hint=".set lists them.")
        return True

    def _parameters(self, sql: str) -> dict[str, Any] | None:
        """The values of the parameters that a statement has; None without any."""
        if not self.options.parameters:
            return None
        from hybrid.sql.parameters import parameter_names

        try:
            names = parameter_names(sql)
        except HybridError:  # running it says what is wrong
            return None
        return {name: value for name, value in self.options.parameters.items() if name in names} or None

    def _export(self, statement: str, output: Output, params: dict[str, Any] | None) -> None:
        from hybrid.cli.export import export

        try:
            report = export(
                self.cli,
                statement,
                output.path,
                as_of=self.options.as_of,
                force=output.force,
                by_suffix=True,
                params=params,
            )
        except HybridError:
            self.cli.say(f"Nothing was written. The next statement goes to {output.path}; .output shows rows again.")
            raise
        self.options.output = None
        self.last_revision = report.revision
        self._report(None, None)  # the sentence of the export has rows and time

    def _report(self, rows: int | None, took_s: float | None) -> None:
        parts = [counted(rows, "row")] if self.is_interactive and rows is not None else []
        if self.options.has_timing and took_s is not None:
            parts.append(f"{took_s * 1000:.0f} ms" if round(took_s * 1000) < 1000 else f"{took_s:.2f} s")
        if self.options.has_revision and self.last_revision:
            parts.append(f"revision {self.last_revision}")
        if parts:
            self.cli.say(", ".join(parts))
