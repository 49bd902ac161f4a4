"""Names of segments."""

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from hybrid.config.schema_json import parse_schema
from hybrid.config.table_config import MoveConfig
from hybrid.table.names import (
    offline_segment,
    realtime_segment,
    realtime_sequence,
    time_text,
    time_words,
    times_in_name,
    why_no_segment_name,
)
from tests.query.halves import orders_spec

TABLES = st.from_regex(r"[A-Za-z0-9_]{1,20}", fullmatch=True)
SPOTS = st.none() | st.integers() | st.text(max_size=12)


def test_the_recipes_names():
    assert realtime_segment("orders", 0, 3, 1637491080000) == "orders__0__3__20211121T1038Z"
    assert offline_segment("orders", 1632463351000, 1632467070000, set()) == "orders_1632463351000_1632467070000_0"
    assert offline_segment("orders", None, None, {"orders_0"}) == "orders_1"
    assert offline_segment("web-sales", 5, 7, {"web-sales_5_7_v2_0"}, "v2") == "web-sales_5_7_v2_1"


def test_a_time_in_a_message_is_as_its_column_has_it():
    doc = {"name": "ts", "granularity": "1:MILLISECONDS"}
    forms = {
        "1632463351000": ("LONG", "1:MILLISECONDS:EPOCH"),
        "1632463351": ("LONG", "1:SECONDS:EPOCH"),
        "2021/09/24": ("STRING", "SIMPLE_DATE_FORMAT|yyyy/MM/dd"),
        "2021-09-24T06:02:31Z": ("TIMESTAMP", "TIMESTAMP"),
    }
    for words, (kind, form) in forms.items():
        fields = [{**doc, "dataType": kind, "format": form}]
        schema = parse_schema({"schemaName": "orders", "dateTimeFieldSpecs": fields}, "s.json")
        assert time_words(replace(orders_spec(), schema=schema), 1632463351000) == words


def test_the_times_in_a_name_are_read_whatever_stands_around_them():
    spec = orders_spec()
    named = replace(spec, move=MoveConfig(name_prefix="web_sales", name_postfix="a_1"))
    assert times_in_name(spec, "orders_5_7_0") == times_in_name(named, "orders_5_7_0") == (5, 7)
    assert times_in_name(named, "web_sales_5_7_a_1_12") == (5, 7)
    for other in ("web_sales_5_7_12", "orders_5_7_a_1_12", "web_sales_a_1_12", "orders_5_0", "orders_5_7_x"):
        assert times_in_name(named, other) is None, other
        assert times_in_name(named, other, (5, 8)) is None, other
    assert times_in_name(named, "before_5_7_12", (5, 7)) == times_in_name(spec, "a_5_7_b_1", (5, 7)) == (5, 7)


@given(TABLES, st.integers(0, 99), st.integers(0, 10**6), st.integers(0, 4_102_444_800_000))
def test_the_sequence_stands_in_a_realtime_name(table, partition, sequence, created):
    name = realtime_segment(table, partition, sequence, created)
    assert realtime_sequence(name) == sequence
    assert why_no_segment_name(name) is None


@given(TABLES, SPOTS, SPOTS, st.integers(0, 5))
def test_an_offline_name_is_free_and_fit_for_a_folder(table, low, high, count):
    taken: set[str] = set()
    for _ in range(count + 1):
        name = offline_segment(table, low, high, taken)
        assert name not in taken
        assert re.fullmatch(r"[A-Za-z0-9_.\-]+", name)
        taken.add(name)
    assert name.endswith(f"_{count}")


@given(st.text())
def test_a_time_as_part_of_a_name_divides_no_name(text):
    assert re.fullmatch(r"[A-Za-z0-9.\-]*", time_text(text))


def test_what_a_name_cannot_be():
    for name in ("", ".", "..", "a/b", " a", "a:b", "x" * 201):
        assert why_no_segment_name(name) is not None, name
    for name in ("a b", "ä", "a#1"):
        assert why_no_segment_name(name) is None, name
