"""The formats in which a result is written, and how a file name, an option or a request selects one."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import PurePath

from hybrid.errors import UsageError


class ResultFormat(StrEnum):
    """A format of a result. JSON is one array with a row in each line, JSONL one object for each row."""

    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"
    MARKDOWN = "markdown"
    PARQUET = "parquet"
    ARROW = "arrow"

    @property
    def is_binary(self) -> bool:
        """Whether the format is not for a terminal."""
        return self in (ResultFormat.PARQUET, ResultFormat.ARROW)

    @property
    def media_type(self) -> str:
        """The media type in HTTP. Arrow's is that of its stream, which can be read while it arrives."""
        return _MEDIA_TYPES[self][0]


_SUFFIXES = {
    ".csv": ResultFormat.CSV,
    ".json": ResultFormat.JSON,
    ".jsonl": ResultFormat.JSONL,
    ".ndjson": ResultFormat.JSONL,
    ".md": ResultFormat.MARKDOWN,
    ".markdown": ResultFormat.MARKDOWN,
    ".parquet": ResultFormat.PARQUET,
    ".arrow": ResultFormat.ARROW,
}
_MEDIA_TYPES = {
    ResultFormat.CSV: ("text/csv",),
    ResultFormat.JSON: ("application/json",),
    ResultFormat.JSONL: ("application/x-ndjson", "application/jsonl", "application/x-jsonlines"),
    ResultFormat.MARKDOWN: ("text/markdown",),
    ResultFormat.PARQUET: ("application/vnd.apache.parquet",),
    ResultFormat.ARROW: ("application/vnd.apache.arrow.stream",),
}
_BY_MEDIA_TYPE = {name: fmt for fmt, names in _MEDIA_TYPES.items() for name in names}


def format_named(name: str) -> ResultFormat:
    """The format of this name. UsageError with the list for any other name."""
    try:
        return ResultFormat(name.lower())
    except ValueError:
        raise UsageError(f"'{name[:40]}' is no format of a result: {_listed(list(ResultFormat))}.") from None


def format_of_file(path: str, name: str | None = None) -> ResultFormat:
    """The format for a file: the one named, else that of the file's suffix. UsageError with the list if it has none."""
    if name is not None:
        return format_named(name)
    suffix = PurePath(path).suffix.lower()
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    problem = f"the suffix '{suffix}' names no format" if suffix else "a name without a suffix needs a format"
    raise UsageError(
        f"{path}: {problem}. The suffixes are {_listed(list(_SUFFIXES))}.",
        hint=f"hybrid query -o FILE --format {'|'.join(ResultFormat)} sets the format of any file.",
    )


def format_accepted(accept: str) -> ResultFormat:
    """The format that an `Accept` header prefers: the first that it names. CSV if it names none, as curl does."""
    names = (part.partition(";")[0].strip().lower() for part in accept.split(","))
    return next((_BY_MEDIA_TYPE[name] for name in names if name in _BY_MEDIA_TYPE), ResultFormat.CSV)


def distinct_names(names: Sequence[str]) -> list[str]:
    """The column names; a repeated name gets a number, because rows are objects and files have named columns."""
    used, counts = set(names), dict[str, int]()
    distinct = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        unique = name
        while counts[name] > 1 and unique in used:
            unique = f"{name}_{counts[name]}"
            counts[name] += unique in used
        used.add(unique)
        distinct.append(unique)
    return distinct


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"
