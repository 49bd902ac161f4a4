r"""The dot commands of the shell. A backslash does as well as the dot: `\watch 2`, as users of psql write it."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from hybrid.cli.cells import View, printable
from hybrid.cli.output import FILE_FORMATS, FORMATS
from hybrid.cli.parameters import shell_value
from hybrid.cli.shell.session import Output, ShellSession
from hybrid.cli.shell.statements import ShellInput, read_inputs
from hybrid.errors import ConflictError, NotFoundError, UsageError, suggestion
from hybrid.operations.catalog_statements import column_role

ON, OFF = "on", "off"
SWITCHES = (ON, OFF)
_NOW = "now"
_WATCH_S, _WATCH_MIN_S = 2.0, 0.1
_NESTED_MAX = 16
_INTRODUCTION = "Statements are Pinot's SQL and end with ';'. SET name = value; holds for the statements after it."
_TABLES = View(("name", "halves", "time_column", "primary_key"))
_COLUMNS = View(("column", "type", "role"), kinds={})


@dataclass(frozen=True)
class DotCommand:
    """A dot command: `run(session, argument, statement)`, where `statement` is the SQL before it, if it takes any."""

    name: str
    argument: str
    help: str
    run: Callable[[ShellSession, str, str | None], None]
    aliases: tuple[str, ...] = ()
    takes_statement: bool = False

    @property
    def usage(self) -> str:
        """The command as it is written."""
        return f".{self.name} {self.argument}".rstrip()


class LeaveShell(Exception):
    """The user leaves the shell."""


def run_input(session: ShellSession, given: ShellInput) -> None:
    """Run a statement or a dot command. Raises its error; LeaveShell when the user leaves."""
    if given.is_command:
        run_command(session, given)
    else:
        session.run(given.text)


def run_command(session: ShellSession, given: ShellInput) -> None:
    """Run a dot command. UsageError for one that does not exist or whose argument is wrong."""
    word, _, argument = given.text.partition(" ")
    command = find_command(word)
    if command is None:
        known = [f".{name}" for name in COMMANDS]
        raise UsageError(f"There is no '.{word}'.{suggestion(f'.{word}', known)}", hint=".help lists all commands.")
    if given.statement is not None and not command.takes_statement:
        raise UsageError(f".{command.name} does not end a statement; end it with ';' first.")
    command.run(session, argument.strip(), given.statement)


def find_command(word: str) -> DotCommand | None:
    """The command of a name or an alias."""
    return COMMANDS.get(word.lower()) or _BY_ALIAS.get(word)


def _tables(session: ShellSession, argument: str, _: str | None) -> None:
    tables = [table for table in session.ask("table_list") if argument.lower() in table["name"].lower()]
    empty = f"No table has '{argument}' in its name." if argument else "No tables yet. Try: hybrid table create --help"
    with session.results() as stream:
        session.cli.emit(tables, _TABLES, empty=empty, stream=stream)


def _schema(session: ShellSession, argument: str, _: str | None) -> None:
    names = [argument.strip('"')] if argument else [table["name"] for table in session.ask("table_list")]
    with session.results() as stream:
        for name in names:
            if len(names) > 1 and not session.cli.is_machine_read:
                click.echo(f"{printable(name)}:", file=stream)
            table = session.ask("table_show", table=name)
            keys = table["primary_key"] or ()
            rows = [
                {"column": column, "type": kind, "role": column_role(column, keys, table["time_column"])}
                for column, kind in table["columns"].items()
            ]
            session.cli.emit(rows, _COLUMNS, stream=stream)


def _explain(session: ShellSession, argument: str, statement: str | None) -> None:
    sql = argument or statement or session.last_statement
    if sql is None:
        raise UsageError("There is no statement to explain yet.", hint=".explain select ...")
    session.explain(sql)


def _revision(session: ShellSession, argument: str, _: str | None) -> None:
    if argument:
        session.options.has_revision = _switch("revision", argument)
    elif session.last_revision is None:
        raise UsageError("No statement has been answered yet, so there is no revision.")
    else:
        click.echo(printable(session.last_revision))


def _as_of(session: ShellSession, argument: str, _: str | None) -> None:
    if argument:
        session.options.as_of = None if argument.lower() == _NOW else argument
    moment = session.options.as_of
    session.cli.say(f"Statements are answered as of {moment}." if moment else "Statements are answered as of now.")


def _watch(session: ShellSession, argument: str, statement: str | None) -> None:
    if not session.is_interactive:
        raise UsageError(".watch repeats a statement on a terminal, until Ctrl-C.")
    sql = statement or session.last_statement
    if sql is None:
        raise UsageError("There is no statement to repeat yet.", hint="select ... \\watch 2")
    try:
        pause_s = float(argument or _WATCH_S)
    except ValueError:
        raise UsageError(f".watch takes seconds, not '{argument}'.") from None
    if not _WATCH_MIN_S <= pause_s <= 86_400:
        raise UsageError(f".watch takes {_WATCH_MIN_S} to 86400 seconds.")
    session.last_statement = sql
    has_pager, session.options.has_pager = session.options.has_pager, False
    try:
        while True:
            click.clear()
            session.cli.say(f"Every {pause_s:g} s, until Ctrl-C. Now {time.strftime('%H:%M:%S')}.")
            session.run_statement(sql)
            time.sleep(pause_s)
    finally:
        session.options.has_pager = has_pager


def _format(session: ShellSession, argument: str, _: str | None) -> None:
    if not argument:
        session.cli.say(f"The format is {session.cli.format}.")
        return
    if argument not in FORMATS:
        hint = "parquet and arrow are for files: .output FILE.parquet" if argument in FILE_FORMATS else None
        raise UsageError(f".format takes {', '.join(FORMATS)}, not '{argument}'.", hint=hint)
    session.cli.given["format"] = argument


def _output(session: ShellSession, argument: str, _: str | None) -> None:
    try:
        words = shlex.split(argument)
    except ValueError as error:
        raise UsageError(f".output: {error}.") from error
    force = "--force" in words
    words = [word for word in words if word != "--force"]
    if len(words) > 1:
        raise UsageError(".output takes one file; put quotes around a name with spaces.")
    if not words:
        session.options.output = None
        session.cli.say("Rows are shown here.")
        return
    path = os.path.expanduser(words[0])
    from hybrid.files.results.result_format import format_of_file

    format_of_file(path)
    if Path(path).exists() and not force:
        raise ConflictError(f"{path} exists.", hint=f".output {words[0]} --force replaces it.")
    session.options.output = Output(path, force)
    session.cli.say(f"All rows of the next statement go to {path}.")


def _read(session: ShellSession, argument: str, _: str | None) -> None:
    if not argument:
        raise UsageError(".read takes a file with statements.")
    path = Path(os.path.expanduser(argument.strip("'\"")))
    if session.files_open >= _NESTED_MAX:
        raise UsageError(f"{path}: more than {_NESTED_MAX} files read each other.")
    session.files_open += 1
    try:
        for given in read_inputs(_lines(path)):
            run_input(session, given)
    finally:
        session.files_open -= 1


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8-sig") as file:
            yield from file
    except FileNotFoundError:
        raise NotFoundError(f"The file {path} does not exist.") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8: {error}.") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error


def _set(session: ShellSession, argument: str, _: str | None) -> None:
    options = session.options
    if argument:
        name, _, value = argument.partition(" ")
        if not name.isidentifier() or not value.strip():
            message = ".set takes the name of a parameter and its value; options are set by: SET name = value;"
            raise UsageError(message, hint=".set status open    gives :status a value")
        options.parameters[name] = shell_value(name, value.strip())
        return
    for name, value in options.set_options.items():
        click.echo(f"SET {name} = {value};")
    for name, value in options.parameters.items():
        click.echo(printable(f".set {name} {json.dumps(value, ensure_ascii=False)}"))
    if not options.set_options and not options.parameters:
        session.cli.say("No options are set (SET name = value;), and no parameters (.set name value).")


def _unset(session: ShellSession, argument: str, _: str | None) -> None:
    parameters = session.options.parameters
    if argument not in parameters:
        raise UsageError(
            f"No parameter '{argument}' is set.{suggestion(argument, parameters)}", hint=".set lists them."
        )
    del parameters[argument]


def _timing(session: ShellSession, argument: str, _: str | None) -> None:
    session.options.has_timing = _switch("timing", argument or (OFF if session.options.has_timing else ON))
    session.cli.say(f"Timing is {ON if session.options.has_timing else OFF}.")


def _pager(session: ShellSession, argument: str, _: str | None) -> None:
    session.options.has_pager = _switch("pager", argument or (OFF if session.options.has_pager else ON))
    session.cli.say(f"The pager is {ON if session.options.has_pager else OFF}.")


def _wide(session: ShellSession, argument: str, _: str | None) -> None:
    session.cli.given["wide"] = _switch("wide", argument or (OFF if session.cli.is_wide else ON))
    session.cli.say(f"Wide tables are {ON if session.cli.is_wide else OFF}.")


def _switch(name: str, argument: str) -> bool:
    if argument.lower() not in SWITCHES:
        raise UsageError(f".{name} takes on or off, not '{argument}'.")
    return argument.lower() == ON


def _help(session: ShellSession, argument: str, _: str | None) -> None:
    if argument:
        command = find_command(argument.lstrip(".\\"))
        if command is None:
            raise UsageError(f"There is no '{argument}'.", hint=".help lists all commands.")
        also = " ".join(f".{alias}" for alias in command.aliases)
        click.echo(f"{command.usage}\n    {command.help}{f' Also: {also}' if also else ''}")
        return
    width = max(len(command.usage) for command in COMMANDS.values())
    lines = [f"{command.usage:{width}}  {command.help}" for command in COMMANDS.values()]
    with session.results() as stream:
        click.echo("\n".join([_INTRODUCTION, *lines]), file=stream)


def _quit(session: ShellSession, argument: str, _: str | None) -> None:
    raise LeaveShell


COMMANDS = {
    command.name: command
    for command in (
        DotCommand("tables", "[WORD]", "List tables; WORD: those with it in their name.", _tables, ("dt",)),
        DotCommand("schema", "[TABLE]", "Show the columns of a table, or of all.", _schema, ("d",)),
        DotCommand(
            "explain", "[SQL]", "Show how a statement would be answered; without SQL the last one.", _explain,
            takes_statement=True,
        ),
        DotCommand("revision", "[on|off]", "Show the revision of the last answer; on: of each answer.", _revision),
        DotCommand("as-of", "[TIME|REVISION|now]", "Answer as the tables were then.", _as_of, ("asof",)),
        DotCommand(
            "watch", "[SECONDS]", "Repeat the last statement every 2 (or so many) seconds, until Ctrl-C.", _watch,
            takes_statement=True,
        ),
        DotCommand("format", f"[{'|'.join(FORMATS)}]", "Choose the form of results.", _format),
        DotCommand(
            "output", "[FILE [--force]]", "Write all rows of the next statement to FILE; without one, show rows again.",
            _output, ("o",),
        ),
        DotCommand("read", "FILE", "Run the statements of a file, up to the first error.", _read, ("i",)),
        DotCommand(
            "set", "[NAME VALUE]",
            "Give :NAME a value; alone list parameters and the options of SET, which RESET takes back.", _set,
        ),
        DotCommand("unset", "NAME", "Take the value of a parameter back.", _unset),
        DotCommand("timing", "[on|off]", "Show the time that each statement takes.", _timing),
        DotCommand("pager", "[on|off]", "Show results longer than the terminal in $PAGER.", _pager),
        DotCommand("wide", "[on|off]", "Show every column, and break no line.", _wide),
        DotCommand("help", "[COMMAND]", "List these commands, or show one.", _help, ("?", "h")),
        DotCommand("quit", "", "Leave, as Ctrl-D does.", _quit, ("q", "exit")),
    )
}  # fmt: skip
_BY_ALIAS = {alias: command for command in COMMANDS.values() for alias in command.aliases}
