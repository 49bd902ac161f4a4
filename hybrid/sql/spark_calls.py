"""Functions of DuckDB in Spark SQL: the calls that `sql.functions` makes of a row expression.

`_SAME` lists functions with the same name and meaning in both. A function in none of the tables has no Spark form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp

from hybrid.errors import VALIDATION, QueryError
from hybrid.runtime.json_values import capitalized
from hybrid.schema import characters
from hybrid.sql.calls import literal_number, literal_text
from hybrid.sql.spark_numbers import NUMBER_RULES, TypeOf
from hybrid.sql.spark_regex import as_re2_reads, check_java_pattern
from hybrid.sql.spark_text import quoted
from hybrid.sql.zones import CLOCK_UNITS

Write = Callable[[exp.Expr], str]
SparkRule = Callable[[Sequence[exp.Expr], Write], str]

_NAMES = """
    sqrt exp least greatest coalesce nullif ifnull if
    length reverse concat_ws replace contains left right lpad rpad md5 hex unhex
    year quarter month day dayofyear hour minute second date_trunc
"""
_SAME = frozenset(_NAMES.split())
_RENAMED = {
    "starts_with": "startswith", "ends_with": "endswith", "strpos": "instr", "len": "size",
    "list_filter": "filter", "list_append": "array_append",
    "list_min": "array_min", "list_max": "array_max", "week": "weekofyear",
    "make_timestamp_ms": "timestamp_millis", "epoch_ms": "unix_millis",
}  # fmt: skip
_STEP = re.compile(r"to_([a-z]+)s")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_PLACE_MAX = 2**31 - 1
_CLASS = re.compile(r"\[:([a-z]+):\]")
_CLASSES = {"xdigit": "XDigit"}
_KEY, _IN_BRACKETS = re.compile(r'\."([^"]*)"'), r"['\1']"


def write_call(node: exp.Anonymous, write: Write, type_of: TypeOf) -> str:
    """A call in Spark SQL. QueryError (700) for a function without a Spark form."""
    name = node.name.lower()
    if name in NUMBER_RULES:
        return NUMBER_RULES[name](node.expressions, write, type_of)
    if name in _RULES:
        return _RULES[name](node.expressions, write)
    if name not in _SAME and name not in _RENAMED:
        raise _wrong(f"function '{node.name}' cannot be used in a row expression")
    return f"{_RENAMED.get(name, name)}({', '.join(write(argument) for argument in node.expressions)})"


def write_substring(arguments: Sequence[exp.Expr], write: Write) -> str:
    """SUBSTRING(text, start [, length]). Position 0 is before the text, as in SQL; Spark takes it for the first."""
    value, start, *length = (
        _in_32_bits(write(node), node) if place else write(node) for place, node in enumerate(arguments)
    )
    if not length:
        return f"substring({value}, {start})"
    if literal_number(arguments[1].unnest()):
        return f"substring({value}, {start}, {length[0]})"
    return f"substring({value}, {start}, if({start} = 0, {length[0]} - 1, {length[0]}))"


def _in_32_bits(written: str, node: exp.Expr) -> str:
    """A position or length, clamped to Spark's 32 bits; no text is longer."""
    if literal_number(node.unnest()) is not None:
        return written.replace("L", "")
    low = f"if({written} < -{_PLACE_MAX}, -{_PLACE_MAX}, CAST({written} AS int))"
    return f"if({written} > {_PLACE_MAX}, {_PLACE_MAX}, {low})"


def write_step(moment: exp.Expr, step: exp.Expr, write: Write) -> str | None:
    """`moment + to_days(3)`; None when `step` is no step of time."""
    match = _STEP.fullmatch(step.name.lower()) if isinstance(step, exp.Anonymous) else None
    return f"timestampadd({match[1].upper()}, {write(step.expressions[0])}, {write(moment)})" if match else None


def _template(text: str) -> SparkRule:
    return lambda arguments, write: text.format(*(write(argument) for argument in arguments))


def _in_case(name: str, single: Mapping[str, str]) -> SparkRule:
    """UPPER and LOWER by character: Spark's own, like Java's, turn some characters into several."""
    before, after = (quoted("".join(characters)) for characters in (single, single.values()))

    def rule(arguments: Sequence[exp.Expr], write: Write) -> str:
        value = write(arguments[0])
        each = (
            f"transform(split(translate({value}, {before}, {after}), ''), c -> if(length({name}(c)) = 1, {name}(c), c))"
        )
        return f"if({value} RLIKE '[^\\\\x00-\\\\x7F]', array_join({each}, ''), {name}({value}))"

    return rule


def _pattern(node: exp.Expr, *, ignore_case: bool = False) -> str:
    """A constant regular expression, with classes such as `[:alpha:]` in Java's syntax."""
    written = literal_text(node.unnest())
    if written is None:
        raise _wrong("the regular expression must be a quoted constant")
    java = _CLASS.sub(lambda match: f"\\p{{{_CLASSES.get(match[1]) or match[1].capitalize()}}}", written)
    check_java_pattern(java, ignore_case=ignore_case)
    return quoted(as_re2_reads(java))


def _matches(arguments: Sequence[exp.Expr], write: Write) -> str:
    flags = literal_text(arguments[2])
    if flags not in {"i", "c"}:
        raise _wrong("REGEXP_LIKE: the third argument is 'i' or 'c'")
    pattern = _pattern(arguments[1], ignore_case=flags == "i")
    if flags == "i":
        pattern = f"concat('(?iu)', {pattern})"
    return f"regexp_like({write(arguments[0])}, {pattern})"


def _regexp_replace(arguments: Sequence[exp.Expr], write: Write) -> str:
    r"""REGEXPREPLACE with a constant replacement: its `\1` becomes Java's `$1`."""
    new = literal_text(arguments[2])
    if new is None:
        raise _wrong("REGEXPREPLACE: what is put in must be a quoted constant")
    java = _ESCAPED.sub(lambda match: f"${match[1]}" if match[1].isdigit() else match[0], new.replace("$", "\\$"))
    return f"regexp_replace({write(arguments[0])}, {_pattern(arguments[1])}, {quoted(java)})"


def _regexp_extract(arguments: Sequence[exp.Expr], write: Write) -> str:
    group = write(arguments[2]) if len(arguments) > 2 else "0"
    return f"regexp_extract({write(arguments[0])}, {_pattern(arguments[1])}, {group})"


def _json_value(arguments: Sequence[exp.Expr], write: Write) -> str:
    """The value at a JSON path: DuckDB's `$."a b"` becomes `$['a b']`."""
    path = literal_text(arguments[1])
    if path is None:
        raise _wrong("the path into a JSON text must be a quoted constant")
    if "*" in path or "[-" in path:
        raise _wrong(f"the path '{path}' into a JSON text: '*' and places from the end are read in queries only")
    return f"get_json_object({write(arguments[0])}, {quoted(_KEY.sub(_IN_BRACKETS, path))})"


def write_zone(arguments: Sequence[exp.Expr], write: Write) -> str:
    """`timezone(to, timezone(from, moment))`, one of which is UTC."""
    inner = arguments[1]
    assert isinstance(inner, exp.Anonymous)
    to, source, moment = literal_text(arguments[0]), literal_text(inner.expressions[0]), write(inner.expressions[1])
    if source == "UTC":
        return f"from_utc_timestamp({moment}, {quoted(to or '')})"
    return f"to_utc_timestamp({moment}, {quoted(source or '')})"


def _truncate_local(arguments: Sequence[exp.Expr], write: Write) -> str:
    """The start, as an instant, of the unit of local time that contains an instant, by the rules of `sql.zones`."""
    unit, zone = (literal_text(argument) or "" for argument in (arguments[0], arguments[2]))
    moment, name = write(arguments[1]), quoted(zone)
    local = f"from_utc_timestamp({moment}, {name})"
    begun = f"date_trunc({quoted(unit)}, {local})"
    same = f"timestamp_micros(unix_micros({moment}) + unix_micros({begun}) - unix_micros({local}))"
    if unit in CLOCK_UNITS:
        return same
    return f"if(from_utc_timestamp({same}, {name}) = {begun}, {same}, to_utc_timestamp({begun}, {name}))"


def _units_between(arguments: Sequence[exp.Expr], write: Write) -> str:
    """Whole units between two times. A month is over on the last day of a shorter month, as in DuckDB."""
    unit, start, end = arguments[0].name.upper(), write(arguments[1]), write(arguments[2])
    if unit not in _MONTHS:
        return f"timestampdiff({unit}, {start}, {end})"
    forth, back = _months_between(start, end), _months_between(end, start)
    return f"((CASE WHEN {start} <= {end} THEN {forth} ELSE -{back} END) div {_MONTHS[unit]}L)"


def _months_between(start: str, end: str) -> str:
    """The whole months from a time to a later one."""
    is_last = f"day({end}) = day(last_day(CAST({end} AS date))) AND day({start}) > day({end})"
    begun = f"if({is_last}, timestampadd(DAY, day({end}) - day({start}), {start}), {start})"
    return f"timestampdiff(MONTH, {begun}, {end})"


_MONTHS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _wrong(message: str) -> QueryError:
    return QueryError(f"{capitalized(message)}.", pinot_code=VALIDATION)


_RULES: dict[str, SparkRule] = {
    "upper": _in_case("upper", characters.SINGLE_UPPER),
    "lower": _in_case("lower", characters.SINGLE_LOWER),
    "substring": write_substring,
    "ltrim": _template("trim(LEADING {1} FROM {0})"),
    "rtrim": _template("trim(TRAILING {1} FROM {0})"),
    "truncate_local": _truncate_local,
    "sha256": _template("sha2({0}, 256)"),
    "list_extract": _template("try_element_at({0}, CAST({1} AS int))"),
    "string_split": _template(r"split({0}, concat('\\Q', {1}, '\\E'))"),
    "split_part": _template("split_part({0}, {1}, {2})"),
    "regexp_matches": _matches,
    "regexp_replace": _regexp_replace,
    "regexp_extract": _regexp_extract,
    "json_valid": _template("(try_parse_json({0}) IS NOT NULL)"),
    "json_extract_string": _json_value,
    "isodow": _template("(weekday({0}) + 1)"),
    "isoyear": _template("extract(YEAROFWEEK FROM {0})"),
    "millisecond": _template("pmod(unix_millis({0}), 60000)"),
    "timezone": write_zone,
    "date_sub": _units_between,
}
