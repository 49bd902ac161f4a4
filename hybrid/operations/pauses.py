"""Pause and resume of a table's ingestion, and the offsets of its consuming segments. Needs no JVM."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import HybridError
from hybrid.kafka.clients import QUERY_TIMEOUT_MS
from hybrid.kafka.streams import require_topics
from hybrid.runtime.sentence_repr import shown_as, shown_as_sentence
from hybrid.table.boundary import TopicPartition

if TYPE_CHECKING:
    from hybrid.home.home import Home
    from hybrid.home.table_ref import TableRef


@shown_as_sentence
@dataclass(frozen=True)
class PauseStatus:
    """Whether a table is paused, since when and why. `sentence` sums it up.

    `state` and `detail` are what the server's ingestion last reported; None where no server has ingested the table yet.
    """

    table: str
    paused: bool
    at_ms: int | None
    comment: str | None
    consuming: tuple[str, ...]
    state: str | None
    detail: str | None
    sentence: str


@shown_as("{0.segment}: {0.state}, at offset {0.offset}")
@dataclass(frozen=True)
class ConsumingInfo:
    """A consuming segment: `offset` is the next one to commit, `latest` Kafka's end (None: Kafka does not answer).

    `partition` is the number in the segment's name. `looked_ms` is when ingestion last asked Kafka, in epoch
    milliseconds (None: no server has yet).
    """

    segment: str
    partition: int
    offset: int
    latest: int | None
    looked_ms: int | None
    state: str


def is_paused(home: Home, table: str) -> bool:
    """Whether a user has paused a table's ingestion."""
    return table in home.catalog.serving.pauses()


def pause(home: Home, table: TableRef, comment: str | None) -> PauseStatus:
    """Pauses a table: servers stop reading its stream until it is resumed."""
    table.half(Half.REALTIME)
    home.catalog.serving.pause(table.name, comment)
    return pause_status(home, table)


def resume(home: Home, table: TableRef) -> PauseStatus:
    """Ends a pause; the sentence says so when there was none."""
    table.half(Half.REALTIME)
    was_paused = home.catalog.serving.resume(table.name)
    return pause_status(home, table, "is resumed" if was_paused else "was not paused; nothing to resume")


def pause_status(home: Home, table: TableRef, resumed: str = "is not paused") -> PauseStatus:
    """Whether a table is paused; `resumed` is the sentence's verb phrase when it is not."""
    consuming = tuple(sorted(table.half(Half.REALTIME).realtime.consuming_names()))
    active_pause = home.catalog.serving.pauses().get(table.name)
    ingestion = home.catalog.serving.ingestions().get(table.name)
    why = f" ({active_pause.comment})" if active_pause and active_pause.comment else ""
    return PauseStatus(
        table=table.name,
        paused=active_pause is not None,
        at_ms=active_pause.at_ms if active_pause else None,
        comment=active_pause.comment if active_pause else None,
        consuming=consuming,
        state=ingestion.state if ingestion else None,
        detail=ingestion.detail if ingestion else None,
        sentence=f"Table '{table.name}' {'is paused' + why if active_pause else resumed}.",
    )


def consuming_info(home: Home, table: TableRef) -> list[ConsumingInfo]:
    """The consuming segments of a table, sorted by name."""
    state = table.half(Half.REALTIME).realtime
    ends = _ends(table)
    ingestion = home.catalog.serving.ingestions().get(table.name)
    consuming = ingestion is not None and ingestion.state == "INGESTING"
    infos = [
        ConsumingInfo(
            segment=segment.name,
            partition=table.spec.group(key.topic, key.partition),
            offset=state.offsets.get(key, segment.start),
            latest=ends.get(key.place),
            looked_ms=ingestion.at_ms if ingestion else None,
            state="CONSUMING" if consuming else "NOT_CONSUMING",
        )
        for key, segment in state.consuming.items()
    ]
    return sorted(infos, key=lambda info: info.segment)


def _ends(table: TableRef) -> Mapping[TopicPartition, int]:
    """Kafka's end offsets by partition; empty when it does not answer."""
    stream = table.spec.stream
    if stream is None:
        return {}
    try:
        return require_topics(stream, timeout_ms=QUERY_TIMEOUT_MS).ends
    except HybridError:
        return {}
