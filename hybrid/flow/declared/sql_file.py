"""Reads a SQL flow file: streaming tables, flows, and where their queries read files. Nothing runs here.

CREATE [OR REFRESH] STREAMING [LIVE] TABLE t [(columns)] [TBLPROPERTIES (...)] [COMMENT '...'] [AS SELECT ...];
CREATE FLOW f [COMMENT '...'] AS INSERT INTO [ONCE] t BY NAME
    SELECT ... FROM [STREAM] read_files('path', name => value);
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from hybrid.errors import SpecError, meant
from hybrid.flow.declared.model import Flow, FlowTable
from hybrid.flow.declared.options import DeclaredFileSource, parse_source
from hybrid.flow.declared.session import FlowSession
from hybrid.flow.declared.sql_metadata import is_narrowed, with_metadata
from hybrid.flow.declared.sql_query import FilesQuery
from hybrid.schema.sqltext import Cursor, Kind, SqlText, Token

_VARIABLE = re.compile(r"\$\{\s*([A-Za-z_][A-Za-z0-9_.\-]*)\s*\}")
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$\{[^}]*\}", re.DOTALL)
_READ_FILES = "READ_FILES"


@dataclass(frozen=True)
class _Read:
    """One `[STREAM] read_files(...)` of a query, at [`start`, `end`) of the text."""

    source: DeclaredFileSource
    start: int
    end: int


def declare_sql(path: Path, text: str, session: FlowSession) -> None:
    """Fills the session's declaration from the text of a SQL file. SpecError names line and column."""
    sql = SqlText(_filled(text, session), str(path))
    cursor = Cursor(sql)
    while not cursor.is_done():
        if cursor.skip(";"):
            continue
        _statement(cursor, session)
        if not cursor.is_done():
            cursor.expect(";", "behind the statement")


def _filled(text: str, session: FlowSession) -> str:
    """The text with every `${name}` outside of comments replaced by its value."""

    def fill(match: re.Match[str]) -> str:
        text = match[0]
        return text if text.startswith(("--", "/*")) else _VARIABLE.sub(lambda name: _value(name[1], session), text)

    return _COMMENT.sub(fill, text)


def _value(name: str, session: FlowSession) -> str:
    value = session.variable(name)
    if value is None:
        near = meant(name, session.variables)
        message = f"{session.declaration.source}: ${{{name}}}: no --var of that name was given.{near}"
        raise SpecError(message, hint=f"hybrid flow run FILE --var {name}=VALUE")
    return value


def _statement(cursor: Cursor, session: FlowSession) -> None:
    start = cursor.token
    if not cursor.skip("CREATE"):
        cursor.fail(f"{start.shown}: a flow file has CREATE STREAMING TABLE and CREATE FLOW, and nothing else.")
    if cursor.skip("FLOW"):
        _flow(cursor, session, start)
        return
    cursor.skip("OR", "REFRESH")
    if not cursor.skip("STREAMING"):
        cursor.fail(
            f"CREATE {cursor.token.raw.upper()} is not built: there are CREATE STREAMING TABLE and CREATE FLOW.",
            hint="A view or an aggregate is a query here: hybrid query",
        )
    cursor.skip("LIVE")
    cursor.expect("TABLE", "behind STREAMING")
    _table(cursor, session, start)


def _table(cursor: Cursor, session: FlowSession, start: Token) -> None:
    cursor.skip("IF", "NOT", "EXISTS")
    name = _name(cursor, "a table")
    columns = _columns(cursor) if cursor.at("(") else None
    comment: str | None = None
    properties: dict[str, str] = {}
    while not (cursor.at("AS") or cursor.at(";") or cursor.is_done()):
        if cursor.skip("COMMENT"):
            comment = _string(cursor, "the comment")
        elif cursor.skip("TBLPROPERTIES"):
            properties.update(_properties(cursor))
        elif cursor.skip("PARTITIONED", "BY") or cursor.skip("CLUSTER", "BY"):
            if not cursor.skip("AUTO"):
                _matched(cursor)
        else:
            cursor.fail(
                f"{cursor.token.shown} is not read here: behind the name come columns, COMMENT, TBLPROPERTIES, "
                "PARTITIONED BY, CLUSTER BY, AS."
            )
    place = cursor.sql.place(start.start)
    session.declaration.add_table(FlowTable(name, place, comment, properties, columns))
    if cursor.skip("AS"):
        _add_flow(cursor, session, Flow(name, name, place, _query(cursor, session), False, comment))


def _flow(cursor: Cursor, session: FlowSession, start: Token) -> None:
    name = _name(cursor, "a flow")
    comment = _string(cursor, "the comment") if cursor.skip("COMMENT") else None
    cursor.expect("AS", "behind the flow's name")
    if cursor.at("AUTO", "CDC") or cursor.at("APPLY"):
        cursor.fail("AUTO CDC is not built: a flow appends, by INSERT INTO.")
    for word in ("INSERT", "INTO"):
        cursor.expect(word, "behind AS")
    once = cursor.skip("ONCE")
    target = _name(cursor, "a table")
    if not cursor.skip("BY", "NAME"):
        cursor.fail("BY NAME is missing behind the table: columns are matched by their names.")
    place = cursor.sql.place(start.start)
    _add_flow(cursor, session, Flow(target, name, place, _query(cursor, session), once, comment))


def _add_flow(cursor: Cursor, session: FlowSession, flow: Flow) -> None:
    assert isinstance(flow.query, FilesQuery)
    streams = [source for source in flow.query.sources if source.streaming]
    if flow.once and streams:
        cursor.sql.fail(
            flow.query.start,
            f"flow '{flow.name}' is ONCE and reads STREAM read_files: what comes after its run would never be read.",
            hint="Leave out STREAM, or ONCE.",
        )
    if not flow.once and not streams:
        cursor.sql.fail(
            flow.query.start,
            f"flow '{flow.name}' is not ONCE and reads no stream: each run would append the same rows again.",
            hint="Write STREAM read_files(...), or INSERT INTO ONCE.",
        )
    session.declaration.add_flow(flow)


def _query(cursor: Cursor, session: FlowSession) -> FilesQuery:
    """Takes the query up to the end of the statement."""
    start = cursor.token
    if not (cursor.at("SELECT") or cursor.at("WITH") or cursor.at("FROM") or cursor.at("VALUES") or cursor.at("(")):
        cursor.fail(f"{start.shown} begins no query.")
    reads: list[_Read] = []
    while not (cursor.at(";") or cursor.is_done()):
        first = cursor.token
        if cursor.skip("STREAM"):
            inside = cursor.skip("(")
            if not cursor.at(_READ_FILES):
                cursor.fail(f"STREAM of {cursor.token.shown} is not built: streams of flows are files, by read_files.")
            source = _read_files(cursor, streaming=True)
            if inside:
                cursor.expect(")", "behind read_files(...)")
            reads.append(_Read(source, first.start, cursor.token.start))
        elif cursor.at(_READ_FILES, "("):
            source = _read_files(cursor, streaming=False)
            reads.append(_Read(source, first.start, cursor.token.start))
        elif cursor.at("LIVE", "."):
            cursor.fail("LIVE. names tables of a pipeline, which are not read here: streams of flows are files.")
        else:
            cursor.take()
    text, views = _with_views(cursor.sql.text, start.start, cursor.token.start, reads)
    named = with_metadata(text)
    if named is None:
        return FilesQuery(text, views, session, start.start)
    if is_narrowed(text):
        cursor.sql.fail(
            start.start,
            "_metadata beside SELECT DISTINCT *, UNION, EXCEPT or INTERSECT is not built: `*` would count it.",
            hint="Name the columns, or read _metadata in a query inside of it.",
        )
    return FilesQuery(named, {name: replace(view, metadata=True) for name, view in views.items()}, session, start.start)


def _with_views(text: str, start: int, end: int, reads: list[_Read]) -> tuple[str, Mapping[str, DeclaredFileSource]]:
    """The query with a name instead of each `read_files`, and the source of each name."""
    parts, views, at = [], {}, start
    for number, read in enumerate(reads):
        name = f"{{files_{number}}}"
        views[name] = read.source
        parts += [text[at : read.start], name, " "]
        at = read.end
    return "".join([*parts, text[at:end]]).strip(), views


def _read_files(cursor: Cursor, *, streaming: bool) -> DeclaredFileSource:
    """Takes `read_files('path', name => value, ...)`."""
    call = cursor.take()
    cursor.expect("(", "behind read_files")
    path = _string(cursor, "the path")
    options: dict[str, str] = {}
    while cursor.skip(","):
        name = cursor.name("an option")
        if not cursor.skip("=", ">"):
            cursor.fail(f"'=>' is missing behind {name.raw}: options are written name => value.")
        if name.raw in options:
            cursor.fail(f"option {name.raw} is given twice.")
        options[name.raw] = _literal(cursor)
    cursor.expect(")", "behind the options of read_files")
    place = f"{cursor.sql.source}: {cursor.sql.place(call.start)}: read_files"
    return parse_source(path, options, place, streaming=streaming)


def _literal(cursor: Cursor) -> str:
    token = cursor.token
    if token.kind in (Kind.STRING, Kind.QUOTED, Kind.NUMBER) or token.text.lower() in ("true", "false"):
        return cursor.take().text
    cursor.fail(f"{token.shown} is no value: write a text in quotes, a number, true or false.")


def _string(cursor: Cursor, what: str) -> str:
    """Takes a text, in double quotes too, as in Spark."""
    if cursor.token.kind not in (Kind.STRING, Kind.QUOTED):
        cursor.fail(f"{cursor.token.shown} is not {what}: a text in quotes.")
    return cursor.take().text


def _name(cursor: Cursor, what: str) -> str:
    """Takes a name; `a.b` and names in backticks are taken literally."""
    parts = [_simple_name(cursor, what)]
    while cursor.skip("."):
        parts.append(_simple_name(cursor, what))
    return ".".join(parts)


def _simple_name(cursor: Cursor, what: str) -> str:
    if not cursor.skip("`"):
        if cursor.token.kind is not Kind.WORD:
            cursor.fail(f"{cursor.token.shown} is not the name of {what}.")
        return cursor.take().raw
    start = cursor.token.start
    while not (cursor.at("`") or cursor.is_done()):
        cursor.take()
    text = cursor.sql.text[start : cursor.token.start]
    cursor.expect("`", "behind the name")
    return text


def _columns(cursor: Cursor) -> str:
    """The text between the parentheses after a table's name."""
    start = cursor.token.start + 1
    *inside, close = _matched(cursor)
    for token in inside:
        if token.kind is Kind.WORD and token.text.upper() in ("CONSTRAINT", "EXPECT", "GENERATED", "MASK"):
            message = f"{token.text.upper()} in the columns is not built: columns have names, types and comments."
            cursor.sql.fail(token.start, message)
        if token.kind is Kind.WORD and token.text.upper() == "NOT":
            cursor.sql.fail(
                token.start, "NOT NULL is not built for tables of flows: only the time column needs a value."
            )
    return cursor.sql.text[start : close.start]


def _matched(cursor: Cursor) -> list[Token]:
    """Takes everything from `(` to its `)`; returns the tokens after the first."""
    cursor.expect("(", "here")
    depth, tokens = 1, []
    while depth:
        if cursor.is_done():
            cursor.fail("a ')' is missing.")
        token = cursor.take()
        depth += (token.raw == "(") - (token.raw == ")")
        tokens.append(token)
    return tokens


def _properties(cursor: Cursor) -> dict[str, str]:
    """Takes `('name' = 'value', ...)`."""
    cursor.expect("(", "behind TBLPROPERTIES")
    properties: dict[str, str] = {}
    while not cursor.skip(")"):
        is_word = cursor.token.kind is Kind.WORD
        name = _name(cursor, "a property") if is_word else _string(cursor, "a name of a property")
        cursor.skip("=")
        properties[name] = _literal(cursor)
        if not cursor.at(")"):
            cursor.expect(",", "between properties")
    return properties
