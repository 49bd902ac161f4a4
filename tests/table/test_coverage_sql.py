"""Boundaries as SQL say what the boundaries say."""

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hybrid.config.table_config import BoundaryMode
from hybrid.table.boundary import INFINITE, Boundary, PartitionKey
from hybrid.table.columns import CONNECTOR, EPOCH, OFFSET, PARTITION, TIME, TOPIC
from hybrid.table.coverage_sql import covered_sql, visible_offline_sql, visible_realtime_sql
from hybrid.table.effective import effective_boundary
from tests.examples import examples

CONNECTORS, TOPICS = st.sampled_from(["kafka", "it's"]), st.sampled_from(["a", "b.c"])
KEYS = st.builds(PartitionKey, CONNECTORS, TOPICS, st.integers(0, 1), st.integers(0, 2))
OFFSETS = st.dictionaries(KEYS, st.integers(0, 9), max_size=5)
ROWS = st.lists(st.tuples(KEYS, st.integers(0, 10), st.integers(-5, 10)), min_size=1, max_size=8)
CONNECTION = duckdb.connect()


def covered(boundary: Boundary, rows) -> list[bool]:
    return told(covered_sql(boundary), rows)


def told(predicate: str, rows) -> list[bool]:
    values = ", ".join(
        "({}, {}, {}, {}, {}, {})".format(
            *("'" + text.replace("'", "''") + "'" for text in (key.connector, key.topic)),
            key.epoch, key.partition, offset, "NULL::BIGINT" if time is None else time,
        )
        for key, offset, time in rows
    )  # fmt: skip
    names = ", ".join([CONNECTOR, TOPIC, EPOCH, PARTITION, OFFSET, TIME])
    found = CONNECTION.execute(f"SELECT {predicate} FROM (VALUES {values}) t({names})").fetchall()
    return [row[0] for row in found]


@settings(max_examples=examples(60))
@given(st.none() | st.integers(-5, 10), OFFSETS, ROWS)
def test_duckdb_and_python_agree(time_ms, frontier, rows):
    boundary = Boundary(time_ms, frontier)
    assert covered(boundary, rows) == [boundary.covers(time, key, offset) for key, offset, time in rows]


@settings(max_examples=examples(30))
@given(OFFSETS, ROWS)
def test_without_a_time_column_too(frontier, rows):
    boundary = Boundary(INFINITE, frontier)
    timeless = [(key, offset, None) for key, offset, _ in rows]
    assert covered(boundary, timeless) == [boundary.covers(None, key, offset) for key, offset, _ in rows]


@pytest.mark.slow
@settings(max_examples=examples(80))
@given(
    st.builds(Boundary, st.none() | st.integers(-5, 10), OFFSETS, st.sampled_from(BoundaryMode),
              st.none() | st.integers(-5, 10)),
    st.none() | st.integers(-5, 10), st.integers(0, 5), ROWS,
)  # fmt: skip
def test_the_boundary_in_effect_too(boundary, last_ms, lag_ms, rows):
    effective = effective_boundary(boundary, last_ms, lag_ms)
    shown = told(visible_realtime_sql(effective), rows)
    assert shown == [not effective.covers(time, key, offset) for key, offset, time in rows]
    assert told(visible_offline_sql(effective), rows) == [effective.shows_offline(time) for _, _, time in rows]
