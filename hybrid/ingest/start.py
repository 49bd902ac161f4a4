"""Starts a connector's stream: a commit that records the offsets from which the topic is read (R2).

Before it neither ingestion nor queries read the topic. So its rows become visible only after the connectors that it
waits for are complete.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hybrid.config.table_config import Half
from hybrid.ingest.batch import stream_of
from hybrid.ingest.plan import leader_epochs_at
from hybrid.kafka.streams import StreamView
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.table_context import TableContext
from hybrid.table.boundary import TopicPartition, partition_key
from hybrid.table.state import next_act


def start_stream(table: TableContext, view: StreamView, starts: Mapping[TopicPartition, int]) -> bool:
    """Commit the start offsets, by partition. False when it was started already; nothing changes then."""
    stream = stream_of(table.spec)
    with table.lock(Half.REALTIME, with_spark=False) as half:
        snapshot = table.half(Half.REALTIME)
        state = snapshot.realtime
        if state.reads(stream):
            return False
        offsets = {partition_key(stream, place): offset for place, offset in starts.items()}
        detail = {"connector": stream.connector, "offsets": {str(key): offset for key, offset in offsets.items()}}
        act = next_act(state, new_act_id("start"), "start", table.bench.now_iso(), detail)
        after = replace(
            state,
            act=act,
            offsets={**state.offsets, **offsets},
            topic_ids=state.with_ids(stream, view.topic_ids),
            leader_epochs={**state.leader_epochs, **leader_epochs_at(view, offsets)},
            progress={**state.progress, stream.connector: {"started_at": act.at}},
        )
        half.commit_state(after, planned=snapshot.version)
    return True
