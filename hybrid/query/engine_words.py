"""Rewords DuckDB's messages on values, types and clauses: Pinot's types, no settings and signatures of DuckDB."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from hybrid.errors import EXECUTION, NO_SUCH_COLUMN, VALIDATION
from hybrid.query.types import wire_type

_KINDS = {
    "INT8": "INT", "INT16": "INT", "INT32": "INT", "UINT32": "LONG", "INT64": "LONG", "UINT64": "LONG",
    "INT128": "38 digits", "UINT128": "38 digits", "BOOL": "BOOLEAN", "DATE": "date",
    "HUGEINT": "38 digits", "TIME": "time", "INTERVAL": "interval",
}  # fmt: skip
_TYPE_WORD = re.compile(
    r"\b(?:U?INT(?:8|16|32|64|128)|U?(?:TINY|SMALL|BIG|HUGE)INT|INTEGER|VARCHAR|STRING|BLOB|BOOL"
    r"|DECIMAL(?:\(\d+(?:, ?\d+)?\))?)(?:_LITERAL)?\b(?:\[\])?"
)
_SOURCE = re.compile(r" when casting from source column (?P<source>\S+)$")
# Sentences on DuckDB's settings, signatures and functions, which users cannot use here.
_INNER = re.compile(r"\bSET\b|\bTRY\(|explicit|[Cc]andidate|might (?:want|need)|\berror_on_|_hy_")
_REGEX_WORDS = (
    "missing ]", "missing )", "missing argument", "unexpected )", "invalid perl operator", "no argument for repetition",
    "bad repetition", "invalid repetition", "invalid escape", "invalid character class", "trailing \\", "invalid UTF-8",
    "invalid named capture", "bad named capture", "regexp too big", "pattern too large", "nested",
)  # fmt: skip
_OPERATORS = {"+", "-", "*", "/", "%", "//", "**", "^", "||", "&", "|", "<<", ">>", "~", "!~~", "~~", "!"}


class EngineMessage(NamedTuple):
    """A sentence with Pinot's error code. `place` is the column or the text of the statement that it is about."""

    text: str
    code: int = EXECUTION
    place: str | None = None


def said_of(text: str) -> EngineMessage | None:
    """The sentence for a message of DuckDB, given without its kind; None where no rule matches."""
    source = _SOURCE.search(text)
    plain = _SOURCE.sub("", text)
    named = source["source"] if source is not None and not source["source"].startswith("_hy_") else None
    where = f" (column '{named}')" if named else ""
    for pattern, rule in _RULES:
        match = pattern.search(plain)
        if match is not None:
            found = match.groupdict("")
            words, place = rule(found), found.get("name") or found.get("value")
            if isinstance(words, EngineMessage):
                return words._replace(place=place)
            return EngineMessage(f"{words.removesuffix('.')}{where}.", place=place)
    if plain.startswith(_REGEX_WORDS):
        return EngineMessage(f"The regular expression is wrong: {plain.rstrip('.!')}.")
    return None


def without_inner_words(text: str) -> str:
    """A message that no rule matches, in Pinot's types and without advice for users of DuckDB."""
    sentences = re.split(r"(?<=[.!])\s+(?=[A-Z])", _SOURCE.sub("", text))
    useful = [sentences[0], *(sentence for sentence in sentences[1:] if not _INNER.search(sentence))]
    first = re.split(r" - an explicit|; could not perform| \(use: ", " ".join(useful))[0]
    return _TYPE_WORD.sub(lambda match: kind_of(match[0]), first).rstrip("! ")


def kind_of(name: str) -> str:
    """Pinot's name for a type as DuckDB writes it in messages."""
    plain = name.strip().removesuffix("_LITERAL").replace("_LITERAL", "")
    if plain in _KINDS:
        return _KINDS[plain]
    return wire_type("VARCHAR" if plain == "STRING" else plain)


def _operator(found: Mapping[str, str]) -> str:
    kinds = [kind_of(type_name) for type_name in re.split(r", (?![^(]*\))", found["types"])]
    what = f"'{found['name']}' cannot compute with {' and '.join(kinds)}"
    return f"{what}. Convert a value first, e.g. CAST(x AS DOUBLE)"


def _not_of_type(found: Mapping[str, str]) -> str:
    kind = kind_of(found["kind"])
    return f"'{found['value']}' is no {'number' if kind == 'BIG_DECIMAL' else kind}"


def _overflow(found: Mapping[str, str]) -> str:
    if found["kind"].startswith("DECIMAL"):
        return _DECIMAL_TOO_LARGE
    return f"{found['what']} does not fit {kind_of(found['kind'])}. Compute with a DOUBLE: CAST(x AS DOUBLE)"


_DECIMAL_TOO_LARGE = (
    "A result of BIG_DECIMAL values has more than 38 digits, 18 of them behind the point. Compute with a DOUBLE: "
    "CAST(x AS DOUBLE)"
)
_DECIMAL_TOO_FINE = (
    "A product of BIG_DECIMAL values needs more than 38 decimal places. Compute with a DOUBLE: CAST(x AS DOUBLE)"
)
_MOMENT = "Times are written 'yyyy-MM-dd HH:mm:ss', or as epoch milliseconds"

Rule = Callable[[Mapping[str, str]], "EngineMessage | str"]
_RULES: list[tuple[re.Pattern[str], Rule]] = [
    (re.compile(pattern, re.DOTALL), rule)
    for pattern, rule in (
        (r"(?:argument types '|function call \")(?P<name>[^\w\s(\"']+)\((?P<types>.*?)\)['\"]\.", _operator),
        (r"Could not convert string (?P<q>['\"])(?P<value>.*)(?P=q) to (?P<kind>[A-Z]+\d*)", _not_of_type),
        (r"invalid timestamp field format: \"(?P<value>.*?)\", expected",
         lambda match: f"'{match['value']}' is no TIMESTAMP. {_MOMENT}"),
        (r"(?P<what>timestamp|date|time) field value out of range: \"(?P<value>.*?)\"",
         lambda match: f"'{match['value']}' is no {match['what']}. {_MOMENT}"),
        (r"invalid (?P<what>date|time) field format: \"(?P<value>.*?)\"",
         lambda match: f"'{match['value']}' is no {match['what']}. {_MOMENT}"),
        (r"Unimplemented type for cast \((?P<one>.+) -> (?P<other>.+)\)",
         lambda match: f"{kind_of(match['one'])} cannot become {kind_of(match['other'])}"),
        (r"Type \S+ with value (?P<value>.+?) can't be cast because the value is out of range for the destination type "
         r"(?P<kind>\S+)", lambda match: f"{match['value']} does not fit {kind_of(match['kind'])}"),
        (r"Overflow in \w+ of (?P<kind>[A-Z]+\d*)(?:\(\d+\))? \((?P<what>.*)\)", _overflow),
        (r"Overflow on (?P<what>\S+\(.*\))", lambda match: f"{match['what']} does not fit LONG"),
        (r"Needed scale \d+ to accurately represent", lambda _: _DECIMAL_TOO_FINE),
        (r"Casting value \"(?P<value>.*?)\" to type DECIMAL\(.*?\) failed: value is out of range",
         lambda match: f"{match['value']} does not fit BIG_DECIMAL: at most 20 digits before the point"),
        (r"^Division by zero", lambda _: "Division by zero: write NULLIF(x, 0) for what is divided by"),
        (r"JSON path error near '(?P<near>.*)'",
         lambda match: f"The JSON path is wrong near '{match['near']}'; it is written like '$.a.b' or '$.list[0]'"),
        (r"Failure in decode: could not convert blob to UTF8",
         lambda _: "Bytes that are read as text are not UTF-8. BYTESTOHEX(x) shows any bytes"),
        (r"Malformed JSON", lambda _: "A value that is read as JSON is none"),
        (r"Unknown TimeZone '(?P<zone>.*?)'",
         lambda match: EngineMessage(f"'{match['zone']}' is no time zone. Write it like 'Europe/Berlin'.", VALIDATION)),
        (r"Could not parse string \"(?P<value>.*?)\" according to format specifier",
         lambda match: f"'{match['value']}' does not fit the date pattern"),
        (r"Could not convert Timestamp\(|Epoch(?:Ms|Micros)? out of range|[Tt]imestamp.*out of range",
         lambda _: "A number is no time: it is outside of what a TIMESTAMP holds"),
        (r"Invalid input for hex digit: (?P<sign>.)",
         lambda match: f"'{match['sign']}' is no hex digit: BYTES are written in pairs of them"),
        (r"Could not decode string .* as base64", lambda _: "The text is no Base64"),
        (r"Cannot (?:compare values of type|combine types of|mix values of type) (?P<one>\S+) (?:and|in)(?: type)? "
         r"(?P<other>\S+)",
         lambda match: f"{kind_of(match['one'])} and {kind_of(match['other'])} cannot be used together here. "
         "Convert one of them, e.g. CAST(x AS STRING)"),
        (r"column \"(?P<name>.*?)\" must appear in the GROUP BY clause",
         lambda match: f"Column '{match['name']}' must be in GROUP BY or in an aggregate function"),
        (r"More than one row returned by a subquery",
         lambda _: "A subquery that stands for one value gives more than one row: add LIMIT 1, or an aggregate"),
        (r"Subquery returns (?P<count>\d+) columns",
         lambda match: f"A subquery that stands for one value gives {match['count']} columns"),
        (r"WHERE clause cannot contain aggregates", lambda _: "WHERE cannot hold aggregates: write HAVING"),
        (r"(?P<what>ORDER|GROUP BY) term out of range - should be between 1 and (?P<count>\d+)",
         lambda match: f"{match['what'].removesuffix(' BY')} BY names a column by a number that is not from 1 to "
         f"{match['count']}"),
        (r"Referenced column \"(?P<name>.*?)\" was not found because the FROM clause is missing",
         lambda match: f"Column '{match['name']}' cannot be used here: a constant is expected"),
        (r"Ambiguous reference to column name \"(?P<name>.*?)\" \(use: (?P<ways>.*?)\)",
         lambda match: f"Column '{match['name']}' is in several tables: write {match['ways'].replace(chr(39), '')}"),
        (r"Cannot extract field '(?P<field>.*?)' from expression \"(?P<name>.*?)\"",
         lambda match: EngineMessage(
             f"Column '{match['name']}' has no field '{match['field']}'. A field of JSON is read by "
             f"JSON_EXTRACT_SCALAR({match['name']}, '$.{match['field']}', 'STRING').", NO_SUCH_COLUMN)),
        (r"Type with name (?P<name>\S+) does not exist",
         lambda match: EngineMessage(
             f"'{match['name']}' is no type; types are INT, LONG, FLOAT, DOUBLE, BIG_DECIMAL, BOOLEAN, "
             "TIMESTAMP, STRING, JSON, BYTES.", VALIDATION)),
        (r"[Oo]verflow|Value out of range|out of range$",
         lambda _: "A number that the statement computes is too large for its type. Compute with a DOUBLE: "
         "CAST(x AS DOUBLE)"),
    )
]  # fmt: skip
