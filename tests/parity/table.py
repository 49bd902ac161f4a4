"""The table of the statements on us and by hand: its rows in a REALTIME half and in the tail, and in a DuckDB table."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb

from hybrid.config.table_json import parse_table
from hybrid.query.tail import TailMessage
from hybrid.records.decode import Decoder
from hybrid.table.boundary import PartitionKey
from hybrid.table.state import Consuming
from tests.parity.fixtures import FOLDER, ROWS, SCHEMA, TABLE
from tests.query.halves import Halves, ListTail, Row

KEY = PartitionKey("kafka", "parity", 0, 0)
SEGMENT = "parity__0__0__20210924T0602Z"
NOW_MS = 1_795_253_333_593
# The rows before it are committed, the others are what Kafka holds beyond the commit.
COMMITTED = 25


def parity_table(folder: Path) -> tuple[Halves, ListTail]:
    """The table and its tail. Every row came through the one decoder."""
    configs = [(json.loads(TABLE.read_text(encoding="utf-8")), "table.json")]
    spec = parse_table(json.loads(SCHEMA.read_text(encoding="utf-8")), "schema.json", configs)
    halves = Halves.create(folder, spec)
    lines = ROWS.read_bytes().splitlines()
    batch = Decoder(spec).decode_batch(lines, [0] * len(lines))
    assert batch.rows == list(range(len(lines)))
    names = [field.name for field in spec.schema.fields]
    rows = [
        Row(dict(zip(names, values, strict=True)), time_ms, offset, KEY, segment=SEGMENT)
        for offset, (values, time_ms) in enumerate(zip(zip(*batch.columns, strict=True), batch.times_ms, strict=True))
    ]
    for first, end in ((0, 12), (12, COMMITTED)):
        consuming = {KEY: Consuming(SEGMENT, 0, 0, end, 0, 0)}
        halves.commit_realtime(rows[first:end], offsets={KEY: end}, consuming=consuming)
    return halves, ListTail([TailMessage(KEY, offset, 0, line) for offset, line in enumerate(lines)])


def by_hand() -> duckdb.DuckDBPyConnection:
    """A DuckDB that holds the rows as `rows.sql` reads them."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute((FOLDER / "rows.sql").read_text(encoding="utf-8").replace("ROWS", str(ROWS)))
    return connection
