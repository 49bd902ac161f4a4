"""The order in which rows of one key win, against the oracle's."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hybrid.config.table_config import ARRIVED, TableSpec, UpsertConfig
from hybrid.schema.schema import FieldKind, FieldSpec, Schema
from hybrid.schema.types import DataType
from hybrid.table import columns
from hybrid.table.upsert_order import REPLACEMENT_CONNECTOR, replacement_topic, winners_first_sql, winning_order
from tests.oracle import Event

SPEC = TableSpec(
    "t", Schema("t", (FieldSpec("version", DataType.LONG, FieldKind.METRIC),)), frozenset(), None, None, None,
    UpsertConfig("version"),
)  # fmt: skip
DEDUP = replace(SPEC, upsert=UpsertConfig(ARRIVED, first_wins=True))
PLACES = st.tuples(
    st.sampled_from(["kafka", "live"]), st.sampled_from(["a", "b"]), st.integers(0, 1), st.integers(0, 2),
    st.integers(0, 5),
)  # fmt: skip
EVENTS = st.builds(Event, place=PLACES, time=st.just(0), comparison=st.integers(0, 2), timestamp=st.integers(0, 2))


def stored(event: Event) -> dict[str, object]:
    coordinates = (columns.CONNECTOR, columns.TOPIC, columns.EPOCH, columns.PARTITION, columns.OFFSET)
    place = dict(zip(coordinates, event.place, strict=True))
    return {"version": event.comparison, columns.TIMESTAMP: event.timestamp, **place}


@given(EVENTS, EVENTS)
def test_the_order_is_the_oracles(one, other):
    first, second = ([stored(event)[name] for name in winning_order(SPEC)] for event in (one, other))
    assert (first < second) == (one.rank < other.rank)
    assert first != second or one.place == other.place, "no tie is left"


@given(EVENTS, EVENTS)
def test_on_a_dedup_table_arrival_alone_orders(one, other):
    first, second = ([stored(event)[name] for name in winning_order(DEDUP)] for event in (one, other))
    assert (first < second) == (one.rank[1:] < other.rank[1:])


def test_the_direction_stands_in_the_sql():
    assert winners_first_sql(SPEC, str).startswith("version DESC NULLS LAST, _hy_timestamp DESC NULLS LAST, ")
    assert winners_first_sql(DEDUP, str).startswith("_hy_timestamp ASC NULLS FIRST, _hy_connector ASC NULLS FIRST")
    assert winners_first_sql(DEDUP, str).count("_hy_timestamp") == 1


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,9}", fullmatch=True))
def test_a_replacements_rows_sort_behind_every_connector(connector):
    assert connector < REPLACEMENT_CONNECTOR


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_later_replacements_sort_behind_earlier_ones(one, other):
    assert (one < other) == (replacement_topic(one) < replacement_topic(other))
