"""Maps DuckDB's errors to QueryErrors: Pinot's code, and a sentence without positions in the rewritten SQL.

It is imported when there is an error: its patterns take longer to compile than a small statement takes.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from hybrid.errors import CANCELLED, EXECUTION, NO_SUCH_COLUMN, TIMEOUT, VALIDATION, QueryError, suggestion
from hybrid.query.engine_words import kind_of, said_of, without_inner_words
from hybrid.schema.dialect import canonical
from hybrid.sql.arity import wrong_number
from hybrid.sql.functions import argument_counts
from hybrid.sql.sizes import TOO_LONG

_KIND = re.compile(r"^([A-Za-z -]+ Error|Error): ")
_COLUMN = (
    re.compile(r'Referenced column "(?P<column>[^"]+)" not found'),
    re.compile(r'(?:Table|Values list|View) "(?P<table>[^"]+)" does not have a column named "(?P<column>[^"]+)"'),
    re.compile(r'column "(?P<column>[^"]+)" does not exist', re.IGNORECASE),
    re.compile(r'Column "(?P<column>[^"]+)" in (?:EXCLUDE|REPLACE|RENAME) list not found'),
    re.compile(r'Referenced table "(?P<table>[^"]+)" not found'),
)
_CALL = re.compile(
    r"""(?:argument types '|function call "|Macro "?)(?P<name>\w+)"?\((?P<types>.*?)\)(?:['"]\.| does)"""
)
_CANDIDATE = re.compile(r'^\t"?\w+"?\((?P<parameters>.*)\)(?: -> .*)?$', re.MULTILINE)
_PARAMETER_MAX = 6
# Types of DuckDB that no value here has.
_UNKNOWN = re.compile(r"\b(?:U?HUGEINT|BIGNUM|VARINT|INTERVAL|BIT|UUID|TIME|TIMETZ|STRUCT|UNION|ENUM|VARIANT)\b")
_MISSING = re.compile("No such file|No files found|does not exist", re.IGNORECASE)
_RELATION = re.compile(r'"?_hy_(rel|tail)_\d+"?')


def query_error(error: Exception, columns: Iterable[str], timeout_ms: int | None) -> QueryError:
    """The QueryError for an error of DuckDB; `columns` are those of the tables in the statement."""
    import duckdb

    if isinstance(error, duckdb.InterruptException):
        return stopped(timeout_ms)
    if isinstance(error, duckdb.OutOfMemoryException):
        return QueryError(
            "The query needs more memory than there is for it.",
            pinot_code=EXECUTION,
            hint="Narrow it, or raise query_memory_bytes of the server that answers it.",
        )
    text = str(error)
    if isinstance(error, duckdb.InvalidInputException) and TOO_LONG in text:
        return QueryError(TOO_LONG + text.split(TOO_LONG, 1)[1].split("\n")[0], pinot_code=EXECUTION)
    for pattern in _COLUMN:
        match = pattern.search(text)
        if match:
            return _no_column(match.groupdict(), columns)
    call = _CALL.search(text)
    if call:
        return _wrong_call(call.group("name"), call.group("types"), text)
    plain = _clean(text)
    words = said_of(plain)
    if words is not None:
        return QueryError(words.text, pinot_code=words.code, place=words.place)
    return QueryError(f"{without_inner_words(plain).rstrip('.')}.", pinot_code=EXECUTION)


def stopped(timeout_ms: int | None) -> QueryError:
    """The error of a statement that reached its timeout; `timeout_ms` None: of a cancelled statement."""
    if timeout_ms is None:
        return QueryError("The query was cancelled.", pinot_code=CANCELLED)
    return QueryError(
        f"The query was stopped after {timeout_ms} ms.",
        pinot_code=TIMEOUT,
        hint="Give it more time with SET timeoutMs = ...; or narrow it.",
    )


def is_evolution(message: str, columns: Collection[str]) -> bool:
    """Whether a query failed because a file lacks a column that the table has."""
    match = _COLUMN[0].search(message)
    return "schema mismatch in glob" in message or (match is not None and match.group("column") in columns)


def is_missing_file(error: BaseException | None) -> bool:
    """Whether DuckDB did not find a data file of the statement."""
    import duckdb

    return isinstance(error, duckdb.IOException) and _MISSING.search(str(error)) is not None


def _no_column(found: dict[str, str | None], columns: Iterable[str]) -> QueryError:
    column, table = found.get("column"), found.get("table")
    if column is None:
        return QueryError(f"Table or alias '{table}' is not in FROM.", pinot_code=NO_SUCH_COLUMN)
    where = f" in '{table}'" if table and not table.startswith("_hy_") else ""
    message = f"Column '{column}' does not exist{where}.{suggestion(column, columns)}"
    return QueryError(message, pinot_code=NO_SUCH_COLUMN, column=column)


def _wrong_call(name: str, types: str, text: str) -> QueryError:
    """The error of a call whose arguments fit no form of the function, with the forms that DuckDB lists."""
    argument_types = _split(types)
    forms = [_split(match.group("parameters")) for match in _CANDIDATE.finditer(text)]
    forms = [[parameter for parameter in form if parameter != "/" and not parameter.startswith("**")] for form in forms]
    if "Candidate macros" in text:  # such a message does not name the argument types
        accepted = " or ".join(f"({', '.join(form)})" for form in forms)
        return QueryError(f"{name.upper()} takes {accepted}; these arguments do not fit.", pinot_code=VALIDATION)
    counts, open_from = _counts(name, forms)
    if len(argument_types) not in counts and (open_from is None or len(argument_types) < open_from):
        wanted_counts = counts if open_from is None else {open_from}
        message = wrong_number(name, wanted_counts, len(argument_types), more=open_from is not None)
        return QueryError(f"{message}.", pinot_code=VALIDATION)
    forms = [form for form in forms if not any(_UNKNOWN.search(parameter) for parameter in form)] or forms
    same = [form for form in forms if len(form) == len(argument_types)] or forms
    shown = dict.fromkeys(", ".join(_parameter(parameter) for parameter in form) for form in same)
    fitting = " or ".join(f"({form})" for form in [*shown][:_PARAMETER_MAX])
    what = ", ".join(_pinot_type(parameter) for parameter in argument_types)
    return QueryError(
        f"{name.upper()} cannot take ({what}){f'; it takes {fitting}' if fitting else ''}.", pinot_code=EXECUTION
    )


def _counts(name: str, forms: Iterable[list[str]]) -> tuple[set[int], int | None]:
    """The numbers of arguments that a function takes, Pinot's forms included, and from which number on it takes any."""
    counts, open_from = set(argument_counts(canonical(name))), None
    for form in forms:
        named = [parameter for parameter in form if not parameter.startswith("*")]
        needed = len([parameter for parameter in named if ":=" not in parameter])
        counts.update(range(needed, len(named) + 1))
        if len(named) < len(form):
            open_from = needed if open_from is None else min(open_from, needed)
    return counts, open_from


def _split(parameters: str) -> list[str]:
    """The parts of a list of parameters or types; commas inside of parentheses do not separate them."""
    parts, depth = [""], 0
    for sign in parameters:
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            parts.append("")
        else:
            parts[-1] += sign
    return [part.strip() for part in parts if part.strip()]


def _parameter(one: str) -> str:
    return f"{_pinot_type(one.split()[-1])}{' ...' if one.startswith('*') else ''}"


def _pinot_type(name: str) -> str:
    plain = name.removesuffix("_LITERAL").replace("STRING", "VARCHAR")
    if plain.removesuffix("[]") in {"ANY", "T"}:
        return "any list" if plain.endswith("[]") else "any"
    return kind_of(plain)


def _clean(text: str) -> str:
    text = _KIND.sub("", text.split("\n\nLINE ")[0].split("\nLINE ")[0]).strip()
    return _RELATION.sub("table", " ".join(text.split()))
