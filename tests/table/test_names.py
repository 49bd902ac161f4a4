"""Names of segments."""

import re

from hypothesis import given
from hypothesis import strategies as st

from hybrid.table.names import is_segment_name, offline_segment, realtime_segment, realtime_sequence, time_text

TABLES = st.from_regex(r"[A-Za-z0-9_]{1,20}", fullmatch=True)
SPOTS = st.none() | st.integers() | st.text(max_size=12)


def test_the_recipes_names():
    assert realtime_segment("orders", 0, 3, 1637491080000) == "orders__0__3__20211121T1038Z"
    assert offline_segment("orders", 1632463351000, 1632467070000, set()) == "orders_1632463351000_1632467070000_0"
    assert offline_segment("orders", None, None, {"orders_0"}) == "orders_1"


@given(TABLES, st.integers(0, 99), st.integers(0, 10**6), st.integers(0, 4_102_444_800_000))
def test_the_sequence_stands_in_a_realtime_name(table, partition, sequence, created):
    name = realtime_segment(table, partition, sequence, created)
    assert realtime_sequence(name) == sequence
    assert is_segment_name(name)


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
    for name in ("", ".", "..", "a/b", "a b", "a:b", "ä", "x" * 201):
        assert not is_segment_name(name), name
