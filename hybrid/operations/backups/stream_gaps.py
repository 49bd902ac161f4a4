"""What Kafka no longer holds of a restored table: the offsets between its own and Kafka's first ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import HybridError, StreamError
from hybrid.ingest.plan import plan_batch
from hybrid.kafka.clients import CHECK_TIMEOUT_MS
from hybrid.kafka.streams import SilentBrokers, absent_words
from hybrid.progress import counted
from hybrid.runtime.json_values import capitalized
from hybrid.table.boundary import current_keys

if TYPE_CHECKING:
    from hybrid.home.home import Home

_NO_BOUND = 2**62


def stream_warnings(home: Home, name: str, brokers: SilentBrokers | None = None) -> list[str]:
    """Sentences on how the ingestion of a table will not continue where it stopped; empty when it will."""
    table = home.table(name)
    stream = table.spec.stream
    if stream is None or Half.REALTIME not in table.spec.halves:
        return []
    state = table.half(Half.REALTIME).realtime
    if not state.reads(stream):
        return []
    try:
        view = (brokers or SilentBrokers(CHECK_TIMEOUT_MS)).view(stream, state)
        keys = current_keys(stream, view.ends, state.offsets)
        positions = {place: state.offsets.get(key, 0) for place, key in keys.items()}
        gone = {place: (positions[place], view.starts[place]) for place in keys}
        gaps = [
            f"Table '{name}', topic '{place.topic}', partition {place.partition}: Kafka no longer holds the offsets "
            f"{position} to {start - 1} ({counted(start - position, 'offset')}). Ingestion of the table stops there; "
            f"hybrid connector reset {name} decides where it continues."
            for place, (position, start) in sorted(gone.items())
            if position < start
        ]
        if gaps:
            return gaps
        plan_batch(name, stream, state, view, _NO_BOUND)
    except StreamError as error:
        return [f"Table '{name}': {error}"]
    except HybridError as error:
        return [f"Table '{name}': what Kafka holds could not be checked: {error}"]
    absent = absent_words(stream, view.topic_ids)
    return [f"Table '{name}': {capitalized(absent)}."] if absent is not None else []
