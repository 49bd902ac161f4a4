"""DuckDB's date patterns in Spark SQL: strftime is `date_format`, strptime is `to_timestamp`, by Java's letters."""

from __future__ import annotations

import re

from hybrid.sql.spark_text import quoted

# Letters to write a time, and to read one: `d` reads one or two digits, as DuckDB does.
_WRITTEN = {
    "%Y": "yyyy", "%y": "yy", "%m": "MM", "%-m": "M", "%b": "MMM", "%B": "MMMM", "%d": "dd", "%-d": "d", "%H": "HH",
    "%-H": "H", "%I": "hh", "%-I": "h", "%M": "mm", "%-M": "m", "%S": "ss", "%-S": "s", "%g": "SSS", "%p": "a",
    "%a": "E", "%A": "EEEE", "%j": "DDD", "%-j": "D", "%n": "SSSSSSSSS",
}  # fmt: skip
_READ = {"MM": "M", "dd": "d", "HH": "H", "hh": "h", "mm": "m", "ss": "s"}
# An offset as `Z`, `+09`, `+0900` or `+09:00`.
_OFFSET = "[XXX][XX][X]"
_READABLE = frozenset(("%Y", "%m", "%-m", "%b", "%B", "%d", "%-d", "%H", "%-H", "%M", "%-M", "%S", "%-S", "%I", "%p"))
_PART = re.compile(r"%-?[A-Za-z]|%%|[^%]+")


def written_pattern(form: str) -> str | None:
    """The letters that write what strftime writes by `form`; None where Spark has none, as for weeks."""
    letters = []
    for part in _PART.findall(form):
        if part in _WRITTEN:
            letters.append(_WRITTEN[part])
        elif part.startswith("%") and part != "%%":
            return None
        else:
            letters.append(_plain(part))
    return "".join(letters)


def read_pattern(form: str) -> str | None:
    """The letters that read what strptime reads by `form`; None where Spark has none, or reads by other rules."""
    parts, letters = _PART.findall(form), []
    for place, part in enumerate(parts):
        if part == "%z":
            letters.append(_OFFSET)
        elif part in _READABLE:
            letter = _WRITTEN[part]
            beside = [other for other in parts[max(0, place - 1) : place + 2] if other is not part]
            is_apart = not any(other.startswith("%") and other != "%%" for other in beside)
            letters.append(_READ.get(letter, letter) if is_apart else letter)
        elif part.startswith("%") and part != "%%":
            return None
        else:
            letters.append(_plain(part))
    return "".join(letters)


def _plain(text: str) -> str:
    """A text between letters. One that has none of Java's signs stands as it is."""
    plain = text.replace("%%", "%")
    return plain if re.fullmatch(r"[-/:., ]*", plain) else "'" + plain.replace("'", "''") + "'"


def write_formatted(moment: str, form: str) -> str | None:
    """`strftime(moment, form)`; None where Spark has no such letters."""
    pattern = written_pattern(form)
    if pattern is None:
        return None
    written = f"date_format({moment}, {quoted(pattern)})"
    # Java writes a plus before years of five digits.
    return f"replace({written}, '+', '')" if "%Y" in form and "+" not in form else written


def write_parsed(text: str, form: str) -> str | None:
    """`strptime(text, form)`; None where Spark reads by other rules."""
    pattern = read_pattern(form)
    return None if pattern is None else f"to_timestamp({text}, {quoted(pattern)})"
