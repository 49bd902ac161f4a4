"""How far a table is behind Kafka, and what stops its ingestion."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from hybrid.config.table_config import Half
from hybrid.errors import HybridError
from hybrid.ingest.plan import plan_batch
from hybrid.kafka.clients import QUERY_TIMEOUT_MS
from hybrid.kafka.streams import SilentBrokers, absent_words
from hybrid.runtime.json_values import capitalized
from hybrid.table.boundary import place_text

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef

_NO_BOUND = 2**62


class Lag(NamedTuple):
    """`behind` counts offsets not ingested yet (None: unknown); `state` is OK, or what stops ingestion, with a hint.

    A topic that does not exist yet is named by the state, too. `tails` divides `behind` among partitions, as
    `place_text` names them.
    """

    behind: int | None
    state: str = "OK"
    hint: str | None = None
    tails: Mapping[str, int] = MappingProxyType({})


def lag_of(home: Home, table: TableRef, silent: SilentBrokers | None = None) -> Lag:
    """How far a table is behind its stream."""
    failure = _failure(home, table)
    if failure is not None:
        return Lag(None, failure, f"hybrid connector list {table.name}")
    stream = table.spec.stream
    if stream is None:
        return Lag(None)
    try:
        state = table.half(Half.REALTIME).realtime
        if not state.reads(stream):
            return Lag(None)
        view = (silent or SilentBrokers(QUERY_TIMEOUT_MS)).view(stream, state)
        plan = plan_batch(table.name, stream, state, view, _NO_BOUND)
    except HybridError as error:
        return Lag(None, str(error), error.hint)
    absent = absent_words(stream, view.topic_ids)
    state_words = f"{capitalized(absent)}; the others are read." if absent else "OK"
    tails = {place_text(stream.topics, piece.key.place): piece.end - piece.start for piece in plan.ranges}
    return Lag(sum(tails.values()), state_words, tails=tails)


def _failure(home: Home, table: TableRef) -> str | None:
    """The connector that failed, and those that wait for it; None when none has. A pause is not a failure."""
    if not table.spec.connectors:
        return None
    from hybrid.operations.connectors.run import TableConnectors  # with the catalog's database library

    statuses = TableConnectors(home, table).look(ask_kafka=False)
    failed = next((status for status in statuses if status.state == "FAILED"), None)
    if failed is None:
        return None
    waiting = ", ".join(f"'{it.name}'" for it in statuses if it.state == "WAITING" and failed.name in it.waits_for)
    also = f" Waiting for it: {waiting}." if waiting else ""
    return failed.failure + also
