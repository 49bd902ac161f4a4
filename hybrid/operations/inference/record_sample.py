"""`RecordSample`: records of a topic or a file, and what in it holds none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from hybrid.config.table_config import Half
from hybrid.schema.types import DataType


class SampledRecord(NamedTuple):
    """A record as it is written, and its place for messages: `partition 0, offset 12` or `line 3`."""

    place: str
    values: Mapping[str, object]


class MalformedRecord(NamedTuple):
    """A message, or a place of a file, that holds no record, with the reason."""

    place: str
    reason: str


class DeclaredType(NamedTuple):
    """The type that a file gives a column itself. `is_list`: it holds several values."""

    data_type: DataType
    is_list: bool = False


class UnreadPart(NamedTuple):
    """What a sample lacks because it reached `limit` (`20 s`), as ranges: `partition 0, offset 12 to 99`."""

    limit: str
    ranges: Sequence[str]


@dataclass(frozen=True)
class RecordSample:
    """A sample. `source` names the topic or file in messages, `half` is the half whose config reads its records.

    `available` is the number of messages that there are (None: not known). `declared` are the types that the file
    gives its columns. `csv` are the configs of Pinot's CSV reader, None for other formats. `is_array`: the file is one
    JSON array. `unread` is set when the reading ended early.
    """

    source: str
    half: Half
    records: Sequence[SampledRecord]
    malformed: Sequence[MalformedRecord] = ()
    available: int | None = None
    is_cut: bool = False
    declared: Mapping[str, DeclaredType] = field(default_factory=dict)
    csv: Mapping[str, str] | None = None
    is_array: bool = False
    unread: UnreadPart | None = None

    @property
    def counted(self) -> str:
        """The size of the sample in words."""
        noun = "message" if self.half is Half.REALTIME else "record"
        count = len(self.records) + len(self.malformed)
        words = f"{count:,} {noun}{'' if count == 1 else 's'}"
        if self.available is not None and self.available > count:
            return f"{words} of about {self.available:,}"
        if self.is_cut:
            return f"the first {words}"
        return words if count == 1 else f"all {words}"
