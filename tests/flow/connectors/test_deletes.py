"""Deletes in files: taken where a key, or the table's stream, says what they mean; else refused with what would do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hybrid.config.table_config import MessageFormat, TableSpec
from hybrid.flow.connectors.convert import Rows
from tests.query.halves import orders_spec

RECORD = {"order_id": 1, "customer": "ada", "amount": 1.5, "ts": 1000}


def taken(spec: TableSpec) -> Rows:
    rows = Rows(spec, "history", message=MessageFormat.CHANGE)
    assert rows.take({"insert": RECORD}, 0, 0, ", line 1") is not None
    rows.take({"delete": RECORD}, 0, 1, ", line 2")
    return rows


@pytest.mark.parametrize("upsert", [True, False])
def test_a_key_or_a_stream_of_deletes(upsert: bool) -> None:
    spec = orders_spec(upsert=upsert)
    assert spec.stream is not None
    spec = replace(spec, stream=replace(spec.stream, message=MessageFormat.CHANGE))
    note = taken(spec).note
    assert (note.rows, note.deletes, note.problem) == (2, 1, None)


def test_without_either_it_says_what_would_do() -> None:
    problem = taken(orders_spec()).note.problem
    assert problem is not None and problem[2] == ", line 2"
    assert "needs a PRIMARY KEY" in problem[3] and "only a table whose Kafka stream brings deletes" in problem[3]
