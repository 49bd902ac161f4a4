"""Re-fetches committed messages that Kafka still holds, decoded as by ingestion, with the current settings."""

from __future__ import annotations

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import SpecError
from hybrid.ingest.batch import stream_of
from hybrid.ingest.plan import check_identity, check_same_log
from hybrid.ingest.read import decode_frame, read_ranges
from hybrid.kafka.streams import require_topics
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.layout import physical_ddl
from hybrid.lake.refetched_rows import RefetchedRows
from hybrid.table.boundary import current_keys
from hybrid.table.ranges import OffsetRange
from hybrid.table.segments import Assigner, Thresholds
from hybrid.table.state import RealtimeState

_ONE_SEGMENT = Thresholds(2**62, 2**62, 2**62)


def held_rows(bench: CommitContext, spec: TableSpec, state: RealtimeState) -> RefetchedRows:
    """The messages up to the offsets of `state`.

    Raises StreamError when a topic is not the one that was read or was truncated, and NotFoundError when it is missing.
    Raises SpecError when a message may hold several records, or when the stream was reset.
    """
    stream = stream_of(spec)
    if spec.holds_several(Half.REALTIME):  # a claim covers a message, and so all its rejected records
        raise SpecError(
            f"Messages of {stream.words} may hold several records, of which some are rejected and others in "
            f"'{spec.name}': they cannot be read once more one by one.",
            hint="hybrid backfill plan ... --input or --sql",
        )
    view = require_topics(stream, state.known_ids(stream), asked=state.known_leader_epochs(stream))
    check_identity(spec.name, stream, state, view)
    check_same_log(spec.name, stream, state, view)
    keys = current_keys(stream, view.starts, state.offsets)
    if any(key.epoch for key in keys.values()):
        raise SpecError(
            f"The stream of '{spec.name}' was reset: which of the messages of {stream.words} were "
            "read is no longer told by their offsets.",
            hint="hybrid backfill plan ... --input or --sql",
        )
    committed = {key: state.offsets[key] for key in keys.values() if key in state.offsets}
    first_offsets = {keys[place]: start for place, start in view.starts.items() if keys[place] in committed}
    ranges = [
        OffsetRange(key, first_offsets[key], end) for key, end in sorted(committed.items()) if first_offsets[key] < end
    ]
    if not ranges:
        return RefetchedRows(bench.session.createDataFrame([], physical_ddl(spec, Half.REALTIME)), first_offsets)
    messages = read_ranges(bench.session, stream, ranges)
    assigners = {
        offset_range.key.place: Assigner(spec.name, offset_range.key, _ONE_SEGMENT, 0, None, 0)
        for offset_range in ranges
    }
    frame = decode_frame(messages, spec, assigners)
    return RefetchedRows(frame, first_offsets)
