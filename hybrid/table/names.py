"""Names of segments: the forms that hybrid generates, and the rules for names from outside.

A name from outside may hold every character that Pinot allows, blanks and `#` too; see `why_no_segment_name`.

Realtime: `orders__0__3__20211121T1038Z` (table, partition, sequence, UTC creation minute), as Pinot's LLC names. A
replay's is `orders__replay0__17__20211121T1038Z`, with the number of its act. On a table of several topics, partition
numbers count from 0, 10000, 20000 and so on, in the topics' order (`StreamConfig.group`).
Offline: `orders_<min>_<max>_<sequence>`: first and last time of the rows read into it, after rounding, before merging.
As with Pinot's SimpleSegmentNameGenerator, a prefix can replace the table's name, a postfix precede the sequence.
"""

from __future__ import annotations

import re
from collections.abc import Container
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise

from hybrid.config.table_config import GROUPS_PER_TOPIC, StreamConfig, TableSpec
from hybrid.errors import DataError
from hybrid.runtime.json_values import utc
from hybrid.table.columns import SEGMENT

_REALTIME = re.compile(r".+__(?:replay)?([0-9]{1,9})__[0-9]+__[^_]+", re.ASCII)
# Characters that Pinot refuses in names (SegmentNameUtils), and characters that are invisible in lists.
_REFUSED = re.compile(r'[\\/:*?"<>|\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]')
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_LENGTH_MAX, _FOLDER_BYTES_MAX = 200, 255
# Characters that Spark and Hive escape in the values of partition folders (ExternalCatalogUtils.escapePathName).
_ESCAPED = re.compile(r"[\x01-\x1f\x7f\"#%'*/:=?\\{\[\]^]")


def realtime_segment(table: str, group: int, sequence: int, created_ms: int) -> str:
    """The name of a realtime segment; `created_ms` is the commit's time in epoch milliseconds.

    `group` is the partition's number among all partitions of the table (`StreamConfig.group`).
    """
    minute = datetime.fromtimestamp(created_ms / 1000, UTC).strftime("%Y%m%dT%H%MZ")
    return f"{table}__{group}__{sequence}__{minute}"


def replay_segment(table: str, group: int, act_number: int, created_ms: int) -> str:
    """The name of the segment for replayed rows of a Kafka partition; a stream's segment never has it."""
    minute = datetime.fromtimestamp(created_ms / 1000, UTC).strftime("%Y%m%dT%H%MZ")
    return f"{table}__replay{group}__{act_number}__{minute}"


def realtime_sequence(name: str) -> int:
    """The sequence number in a realtime segment's name."""
    return int(name.rsplit("__", 2)[1])


def realtime_group(name: str) -> int | None:
    """The partition's number in the name of a realtime or replay segment; None for a name of another form."""
    match = _REALTIME.fullmatch(name)
    return int(match[1]) if match is not None else None


def topic_in_name(stream: StreamConfig, name: str) -> str | None:
    """The topic whose rows a realtime segment holds; None if there are several and the name does not say which."""
    if len(stream.topics) == 1:  # a short cut: every statement asks this for every file
        return stream.topics[0]
    group = realtime_group(name)
    at = group // GROUPS_PER_TOPIC if group is not None else len(stream.topics)
    return stream.topics[at] if at < len(stream.topics) else None


def offline_segment(prefix: str, low: object, high: object, taken: Container[str], postfix: str | None = None) -> str:
    """The first free name for rows of the times `low` to `high` (the time column's own values); counts up from 0.

    `prefix` is the table's name, unless its config sets another.
    """
    times = (time_text(value) for value in (low, high) if value is not None)
    return _numbered("_".join([prefix, *times, *([postfix] if postfix else [])]), taken)


def another_name(name: str, taken: Container[str]) -> str:
    """The first free name with the times of `name`, which is from `offline_segment` and already taken."""
    return _numbered(name.rpartition("_")[0], taken)


def _numbered(stem: str, taken: Container[str]) -> str:
    """The stem with the lowest free number, counted from 0."""
    sequence = 0
    while f"{stem}_{sequence}" in taken:
        sequence += 1
    return f"{stem}_{sequence}"


def time_value(spec: TableSpec, time_ms: int | None) -> object:
    """A time in the format of the time column, as names of segments have it."""
    form = spec.time_field.time_format if spec.time_field else None
    return time_ms if time_ms is None or form is None else form.from_millis(time_ms)


def time_words(spec: TableSpec, time_ms: int) -> str:
    """A time for messages: as its column has it, and of a TIMESTAMP as UTC ISO 8601."""
    value = time_value(spec, time_ms)
    return utc(time_ms) if isinstance(value, datetime) else str(value)


def exact_time(spec: TableSpec, time_ms: int | None, stored: object) -> object:
    """The time for a name: `stored`, a value of the time column, where it denotes this time, else `time_value`.

    A column with a unit finer than milliseconds has several values for one time.
    """
    form = spec.time_field.time_format if spec.time_field else None
    if time_ms is not None and form is not None and form.is_finer_than_millis and isinstance(stored, (int, str)):
        with suppress(DataError):
            if form.to_millis(stored) == time_ms:
                return stored
    return time_value(spec, time_ms)


def time_text(value: object) -> str:
    """A time value as a part of a name: characters that a folder name should not hold become `-`."""
    return re.sub(r"[^A-Za-z0-9.\-]", "-", str(value))


def times_in_name(spec: TableSpec, name: str, held: tuple[int, int] | None = None) -> tuple[int, int] | None:
    """First and last time (epoch ms) in a name like `orders_<min>_<max>_<sequence>`; None for a name of another form.

    `held` are the first and last time of the segment's rows, if it exists. They are recognized in any name: after an
    earlier prefix, or in a format like `2021/09/24`, which a name has as 2021-09-24.
    """
    for low, high in pairwise(name.split("_")[1:-1]):
        if held is not None and _is_text_of(spec, low, held[0]) and _is_text_of(spec, high, held[1]):
            return held
    form = spec.time_field.time_format if spec.time_field else None
    tasks = [config for config in (spec.move, *spec.merge_levels) if config is not None]
    affixes = [(config.name_prefix or spec.name, config.name_postfix) for config in tasks]
    for prefix, postfix in dict.fromkeys([(spec.name, None), *affixes]):
        match = re.fullmatch(rf"{prefix}_([^_]+)_([^_]+){f'_{postfix}' if postfix else ''}_[0-9]+", name, re.ASCII)
        if form is None or match is None:
            continue
        with suppress(DataError):
            return form.to_millis(match[1]), form.to_millis(match[2])
    return None


def _is_text_of(spec: TableSpec, text: str, time_ms: int) -> bool:
    """Whether a part of a name is the text of a time. A unit finer than milliseconds has several texts for it."""
    form = spec.time_field.time_format if spec.time_field else None
    first = last = time_text(time_value(spec, time_ms))
    if form is not None and form.is_finer_than_millis:
        last = time_text(form.last_in_milli(time_ms))
    return len(first) == len(text) and first <= text <= last


def why_no_segment_name(name: str) -> str | None:
    """Why a name from outside cannot be a segment's; None when it can."""
    refused = _REFUSED.search(name)
    if refused is not None:
        return f'it holds {refused[0]!r}, and a name may not hold \\ / : * ? " < > | nor what does not show'
    if name in {"", ".", ".."} or name != name.strip():
        return "it is empty, '.' or '..', or has blanks at an end"
    if name == _NO_VALUE:
        return "in names of folders it stands for no value"
    if len(name) > _LENGTH_MAX or len(segment_folder(name).encode()) > _FOLDER_BYTES_MAX:
        return f"it is too long: a name has at most {_LENGTH_MAX} characters, fewer where they take several bytes"
    return None


def segment_folder(name: str) -> str:
    """The folder of a segment in its half, named as Spark names partition folders."""
    return f"{SEGMENT}={_ESCAPED.sub(lambda match: f'%{ord(match[0]):02X}', name)}"
