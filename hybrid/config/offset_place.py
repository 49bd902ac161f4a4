"""Parses a position in a stream: earliest, latest, a time, a time ago, or offsets by partition."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from hybrid.errors import UsageError
from hybrid.schema.moment import parse_time

if TYPE_CHECKING:
    from hybrid.config.connectors import KafkaStart

_WORDS = {"smallest": "smallest", "earliest": "smallest", "largest": "largest", "latest": "largest"}
_OFFSETS = re.compile(r"[0-9]{1,9}:[0-9]{1,18}(?:,[0-9]{1,9}:[0-9]{1,18})*")


def place_word(text: str) -> str | None:
    """`smallest` or `largest`, from Pinot's words or Kafka's; None for any other text."""
    return _WORDS.get(text.strip().lower())


def place_time_ms(text: str, now_ms: int) -> int | None:
    """Epoch ms of a time as `hybrid.schema.moment` reads it; None for a text that is no time."""
    time = parse_time(text, now_ms)
    return time if isinstance(time, int) else None


def parse_place(text: str, topic: str, now_ms: int, option: str) -> KafkaStart:
    """The position that `text` names in `topic`. UsageError, naming `option`, when it names none."""
    from hybrid.config.connectors import KafkaStart, StartKind

    word, time_ms = place_word(text), place_time_ms(text, now_ms)
    if word is not None:
        return KafkaStart(StartKind.EARLIEST if word == "smallest" else StartKind.LATEST)
    if time_ms is not None:
        return KafkaStart(StartKind.TIMESTAMP, timestamp_ms=time_ms)
    if not _OFFSETS.fullmatch(text.strip()):
        raise UsageError(
            f"{option}: '{text[:100]}' is no place in a topic.",
            hint="Write earliest, latest, a time such as 2021-09-24T08:00:00Z, a time ago such as 2d, "
            "or offsets by partition such as 0:42,1:7.",
        )
    pairs = [pair.split(":") for pair in text.strip().split(",")]
    offsets = {(topic, int(number)): int(offset) for number, offset in pairs}
    if len(offsets) < len(pairs):
        raise UsageError(f"{option}: '{text[:100]}' names a partition twice.")
    return KafkaStart(StartKind.OFFSETS, offsets=offsets)
