"""`InferOptions`: what a person says about a table whose documents are inferred."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hybrid.errors import UsageError
from hybrid.schema.period import parse_period

SAMPLE_DEFAULT = 10_000
_HALF = re.compile(r"_(?:REALTIME|OFFLINE)\Z", re.IGNORECASE)


@dataclass(frozen=True)
class InferOptions:
    """Options of an inference. None: what the sample shows, or the default.

    `name` is the table's. `kafka` are brokers, `registry` is a schema registry's URL, `stream_configs` are further
    entries of streamConfigs. `key` makes an upsert table. `without_time`: a table without a time column.
    `sample` is the most records to read, 0: all of a file. `data_format` and `topic` are for a file: its format, and
    a topic whose messages have the same fields. `ddl`: the statement is wanted too.
    """

    name: str | None = None
    kafka: str | None = None
    registry: str | None = None
    stream_configs: Mapping[str, str] | None = None
    key: Sequence[str] = ()
    time_column: str | None = None
    without_time: bool = False
    bucket: str | None = None
    sample: int = SAMPLE_DEFAULT
    data_format: str | None = None
    topic: str | None = None
    ddl: bool = False

    def check(self) -> None:
        """UsageError, or SpecError for the bucket, where options are wrong or exclude each other."""
        if self.without_time and (self.time_column is not None or self.bucket is not None):
            raise UsageError("--no-time makes a table without a time column: leave --time and --bucket out.")
        if self.bucket is not None and parse_period(self.bucket, "--bucket", "") <= 0:
            raise UsageError("--bucket is a length of time, such as 1h or 1d.")
        if self.sample < 0:
            raise UsageError("--sample is a number of records from 1 on, or 0 for all of a file.")
        if self.ddl and self.stream_configs:
            raise UsageError(
                "--stream-config is an entry of streamConfigs, which --ddl does not write.",
                hint="Leave --ddl out, or add the properties to the connector of the statement.",
            )
        if self.name is not None and table_name(self.name) != self.name:
            raise UsageError(
                f"'{self.name}' is no name of a table: letters, digits and _, at most 100, and no ending _REALTIME or "
                "_OFFLINE."
            )


def table_name(text: str) -> str:
    """The name of a topic or file as a table's: what is neither letter, digit nor `_` becomes `_`."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_")[:100]
    while _HALF.search(name):
        name = _HALF.sub("", name)
    return name or "events"
