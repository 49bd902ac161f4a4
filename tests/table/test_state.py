"""The state that a commit carries."""

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config.table_config import Aggregation, BoundaryMode, MergeLevel, MergeType, MoveConfig
from hybrid.table.boundary import Boundary, PartitionKey
from hybrid.table.state import (
    Act,
    Consuming,
    LineagePointer,
    OfflineState,
    RealtimeState,
    from_user_metadata,
    next_act,
    to_user_metadata,
)

KEYS = st.builds(
    PartitionKey, st.just("kafka"), st.sampled_from(["orders", "a.b-c_d"]), st.integers(0, 2), st.integers(0, 9)
)
OFFSETS = st.dictionaries(KEYS, st.integers(0, 2**63 - 1), max_size=3)
DETAIL = st.dictionaries(st.text(max_size=5), st.integers() | st.text(max_size=8) | st.none(), max_size=3)
ACTS = st.builds(Act, st.text(max_size=8), st.integers(0, 10**6), st.just("move"), st.text(max_size=8), DETAIL)
SEGMENTS = st.builds(Consuming, st.text(max_size=8), *[st.integers(0, 10**12)] * 5)
REALTIME = st.builds(
    RealtimeState, ACTS, OFFSETS, st.dictionaries(st.text(max_size=5), st.text(max_size=5), max_size=2),
    st.dictionaries(KEYS, SEGMENTS, max_size=2), OFFSETS, st.none() | st.integers(), st.integers(0, 10**6),
    leader_epochs=OFFSETS, complete_ms=st.none() | st.integers(), ingested=st.integers(0),
)  # fmt: skip
OFFLINE = st.builds(
    OfflineState, ACTS,
    st.builds(Boundary, st.none() | st.integers(), OFFSETS, st.sampled_from(BoundaryMode), st.none() | st.integers()),
    st.none() | st.builds(LineagePointer, st.text(max_size=5), st.integers(0, 10**6)), st.just({}),
    st.dictionaries(st.text(max_size=5), st.sampled_from(Aggregation), max_size=2),
)  # fmt: skip


@pytest.mark.slow
@given(REALTIME | OFFLINE)
def test_a_state_comes_back_from_its_text(state):
    text = to_user_metadata(state)
    assert from_user_metadata(text) == state
    assert text.isascii() and "\n" not in text, "it stands on one line of the log"


@pytest.mark.slow
@given(REALTIME | OFFLINE)
def test_the_next_act_counts_on(state):
    act = next_act(state, "id", "seal", "now", {})
    assert act.number == state.act.number + 1


def test_foreign_commits_have_no_state():
    for text in (None, "", "hybrid", "{", '"hybrid"', "[1]", json.dumps({"by": "a hybrid tool"}), '{"hybrid": 1}'):
        assert from_user_metadata(text) is None, text


def test_a_half_from_before_filters_has_filtered_nothing() -> None:
    state = RealtimeState(Act("ingest-1", 1, "ingest", "2021-11-21T00:00:00.000+00:00"), filtered=3)
    doc = json.loads(to_user_metadata(state))
    assert from_user_metadata(json.dumps(doc)) == state
    del doc["filtered"]
    assert from_user_metadata(json.dumps(doc)) == dataclasses.replace(state, filtered=0)


def test_what_tasks_have_made_of_rows_stays_known() -> None:
    counts = MoveConfig(merge_type=MergeType.ROLLUP, aggregations=(("rows", Aggregation.COUNT),), round_ms=4)
    adds = (("rows", Aggregation.SUM), ("high", Aggregation.MAX))
    level = MergeLevel(merge_type=MergeType.ROLLUP, aggregations=adds, round_ms=6, name="1day")
    state = OfflineState(Act("create", 0, "create", "now")).with_task(counts).with_task(level).with_task(MoveConfig())
    assert state.rolled == {"rows": Aggregation.COUNT, "high": Aggregation.MAX}
    assert state.boundary.step_ms == 12
