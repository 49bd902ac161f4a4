"""Names of segments: what may be in one, and what ours are made of.

A name that is given may have every character that Pinot's may, blanks and `#` too; see `why_no_segment_name`.

Realtime: `orders__0__3__20211121T1038Z` (table, partition, sequence, UTC creation minute), as Pinot's LLC names; of a
replay `orders__replay0__17__20211121T1038Z`, with the act's number. Of a table of several topics the number of a
partition counts from 0, 10000, 20000 and so on, in the topics' order (`StreamConfig.group`).
Offline: `orders_<min>_<max>_<sequence>`, first and last time of the rows read into it, after rounding, before merging;
as Pinot's SimpleSegmentNameGenerator, with a prefix for the table's name and a postfix before the sequence if wanted.
"""

from __future__ import annotations

import re
from collections.abc import Container
from contextlib import suppress
from datetime import UTC, datetime
from itertools import pairwise

from hybrid.errors import DataError
from hybrid.spec.table_config import GROUPS_PER_TOPIC, StreamConfig, TableSpec
from hybrid.table.columns import SEGMENT

_REALTIME = re.compile(r".+__(?:replay)?([0-9]{1,9})__[0-9]+__[^_]+", re.ASCII)
# What Pinot refuses in names (SegmentNameUtils), and what would not show where names are listed.
_REFUSED = re.compile(r'[\\/:*?"<>|\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]')
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_LENGTH_MAX, _FOLDER_BYTES_MAX = 200, 255
# What Spark and Hive escape in the values of partition folders (ExternalCatalogUtils.escapePathName).
_ESCAPED = re.compile(r"[\x01-\x1f\x7f\"#%'*/:=?\\{\[\]^]")


def realtime_segment(table: str, group: int, sequence: int, created_ms: int) -> str:
    """The name of a realtime segment; `created_ms` is the commit's clock in epoch milliseconds.

    `group` is the partition's number among all of the table's (`StreamConfig.group`).
    """
    minute = datetime.fromtimestamp(created_ms / 1000, UTC).strftime("%Y%m%dT%H%MZ")
    return f"{table}__{group}__{sequence}__{minute}"


def replay_segment(table: str, group: int, act_number: int, created_ms: int) -> str:
    """The name of the segment of rows that a replay brings back to a Kafka partition; no stream's has it."""
    minute = datetime.fromtimestamp(created_ms / 1000, UTC).strftime("%Y%m%dT%H%MZ")
    return f"{table}__replay{group}__{act_number}__{minute}"


def realtime_sequence(name: str) -> int:
    """The sequence number in a realtime segment's name."""
    return int(name.rsplit("__", 2)[1])


def realtime_group(name: str) -> int | None:
    """The partition's number in the name of a realtime segment, a replay's too; None for a name of another form."""
    found = _REALTIME.fullmatch(name)
    return int(found[1]) if found is not None else None


def topic_in_name(stream: StreamConfig, name: str) -> str | None:
    """The topic whose rows a realtime segment holds; None where several may be and the name is of another form."""
    if len(stream.topics) == 1:  # whatever its name: asked for every file of every statement
        return stream.topics[0]
    group = realtime_group(name)
    at = group // GROUPS_PER_TOPIC if group is not None else len(stream.topics)
    return stream.topics[at] if at < len(stream.topics) else None


def offline_segment(prefix: str, low: object, high: object, taken: Container[str], postfix: str | None = None) -> str:
    """The first free name over the times `low` to `high` (the time column's own values); counts up from 0.

    `prefix` is the table's name, unless its config names another.
    """
    times = (time_text(value) for value in (low, high) if value is not None)
    return _numbered("_".join([prefix, *times, *([postfix] if postfix else [])]), taken)


def another_name(name: str, taken: Container[str]) -> str:
    """The first free name of the same times as `name`, which `offline_segment` made and which is taken by now."""
    return _numbered(name.rpartition("_")[0], taken)


def _numbered(stem: str, taken: Container[str]) -> str:
    """The first free name of a stem, counted from 0."""
    sequence = 0
    while f"{stem}_{sequence}" in taken:
        sequence += 1
    return f"{stem}_{sequence}"


def time_value(spec: TableSpec, time_ms: int | None) -> object:
    """A time as the time column itself writes it, as names of segments have it."""
    form = spec.time_field.time_format if spec.time_field else None
    return time_ms if time_ms is None or form is None else form.from_millis(time_ms)


def exact_time(spec: TableSpec, time_ms: int | None, stored: object) -> object:
    """A time as names have it: `stored`, a value of the time column, where it is of this time, else `time_value`.

    A column that counts finer than milliseconds has several values of one time.
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

    `held` are the first and last time of what the segment holds, if it is there. They are recognized in any name: one
    with a prefix of before, or of a time like `2021/09/24`, which the name has as 2021-09-24.
    """
    for low, high in pairwise(name.split("_")[1:-1]):
        if held is not None and _is_text_of(spec, low, held[0]) and _is_text_of(spec, high, held[1]):
            return held
    form = spec.time_field.time_format if spec.time_field else None
    moved = (spec.move.name_prefix, spec.move.name_postfix) if spec.move is not None else (None, None)
    for prefix, postfix in ((spec.name, None), (moved[0] or spec.name, moved[1])):
        found = re.fullmatch(rf"{prefix}_([^_]+)_([^_]+){f'_{postfix}' if postfix else ''}_[0-9]+", name, re.ASCII)
        if form is None or found is None:
            continue
        with suppress(DataError):
            return form.to_millis(found[1]), form.to_millis(found[2])
    return None


def _is_text_of(spec: TableSpec, text: str, time_ms: int) -> bool:
    """Whether a part of a name is a time: one of its several texts, where the column counts finer than milliseconds."""
    form = spec.time_field.time_format if spec.time_field else None
    first = last = time_text(time_value(spec, time_ms))
    if form is not None and form.is_finer_than_millis:
        last = time_text(form.last_in_milli(time_ms))
    return len(first) == len(text) and first <= text <= last


def why_no_segment_name(name: str) -> str | None:
    """Why a name that was given cannot be a segment's; None when it can be."""
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
    """The folder of a segment in its half, as Spark names folders of partitions."""
    return f"{SEGMENT}={_ESCAPED.sub(lambda found: f'%{ord(found[0]):02X}', name)}"
