"""The page that resets a table's stream: where it is read, what a reset would skip and read again, then the reset."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter

from hybrid.errors import HybridError, UsageError, error_document
from hybrid.operations.partitions import partitions_of
from hybrid.serve.console.copies import command_line, copies_of
from hybrid.serve.console.ingestion import unreachable_view
from hybrid.serve.console.page import Json, PageRequest, Threads, change, page

router = APIRouter(include_in_schema=False)
_INGESTION = "/ui/tables/{table}/ingestion"
_PATH = f"{_INGESTION}/reset"
_WORDS = ("earliest", "latest")
_TEXTS = ("time", "offsets")
_OFFSETS_MAX = 40  # partitions whose positions fill in the field


@page(router, _PATH, template="stream_reset.html", title="Reset", threads=Threads.KAFKA)
def reset_page(ask: PageRequest, table: str) -> Json:
    """The partitions of a stream, and what a reset of `topic` to `place` would do.

    `place` is `earliest`, `latest`, or the name of the parameter that has it: `time` or `offsets`.
    """
    name = ask.call("table_show", table=table)["name"]
    ref = ask.context.home.context.table(name)
    stream = ref.spec.stream
    if stream is None:
        return {"table": name, "topics": [], "preview": None, "problem": None}
    ends = ask.context.stream_ends.get(name)
    partitions = partitions_of(ref, ends, ask.context.home.context.now_ms())
    topic = ask.parameter("topic") or stream.topics[0]
    own = [found for found in partitions if found.topic == topic]
    preview, problem = _preview(ask, name, topic)
    return {
        "table": name,
        "topics": list(stream.topics),
        "is_paused": ask.call("pause_status", table=name)["paused"],
        "unreachable": unreachable_view(ends),
        "partitions": [
            {
                "topic": found.topic, "partition": found.partition, "position": found.position, "start": found.start,
                "end": found.end, "lag": found.lag,
            }
            for found in partitions
        ],
        "form": {
            "topic": topic,
            "place": ask.parameter("place") or _WORDS[0],
            "time": ask.parameter("time"),
            "offsets": ask.parameter("offsets")
            or ",".join(f"{found.partition}:{found.position}" for found in own[:_OFFSETS_MAX]),
        },
        "preview": preview,
        "problem": problem,
    }  # fmt: skip


def _preview(ask: PageRequest, table: str, topic: str) -> tuple[Json, Json]:
    """What the reset that the parameters name would do, and why it cannot be told; None without a place."""
    if not ask.parameter("place"):
        return None, None
    try:
        to = place_of(ask)
        plan = ask.call("connector_reset_plan", table=table, name=topic, to=to)
    except HybridError as error:  # the form keeps what was entered
        return None, error_document(error)
    words = ("connector", "reset", table, topic, "--to", to)
    copies = copies_of(
        ask.url, "connector_reset_plan", {"table": table, "name": topic, "to": to}, cli=(*words, "--dry-run"),
        python=f"hy.table({table!r}).connectors.reset({to!r}, {topic!r}, dry_run=True)",
    )  # fmt: skip
    return {
        **plan,
        "to": to,
        "partitions": [{**partition, **ranges_of(partition)} for partition in plan["partitions"]],
        "accepted": json.dumps(plan, separators=(",", ":")),
        "copies": [*copies, command_line(words, "Reset")],
    }, None


def place_of(ask: PageRequest) -> str:
    """The place that the parameters name, as `hybrid connector reset --to` takes it. UsageError: they name none."""
    place = ask.parameter("place")
    if place in _WORDS:
        return place
    if place not in _TEXTS:
        raise UsageError(f"place: '{place[:100]}' is none of {', '.join((*_WORDS, *_TEXTS))}.")
    text = ask.parameter(place).strip()
    if not text:
        raise UsageError(f"{place.capitalize()}: it is empty.", hint="Enter it, or choose another place.")
    return text


def ranges_of(partition: Mapping[str, Any]) -> Json:
    """The first and last offset that a reset loses, skips and reads again, in place of their counts; None for none.

    What is lost and skipped ends at the new position, what is read again begins there.
    """
    to, lost, skipped, again = (partition[name] for name in ("to", "lost", "skipped", "again"))
    return {
        "lost": _range(to - skipped - lost, lost),
        "skipped": _range(to - skipped, skipped),
        "again": _range(to, again),
    }


def _range(first: int, count: int) -> Json:
    return {"first": first, "last": first + count - 1, "count": count} if count else None


@change(router, _PATH, verb="connector_reset", then=_INGESTION)
def reset_change(ask: PageRequest, table: str) -> Json:
    """Carries out the reset whose preview is in `accepted`; the field `confirm` repeats the table's name."""
    shown = ask.call("table_show", table=table)
    name = shown["name"]
    if shown["topic"] is None:
        raise UsageError(f"Table '{name}' reads no stream.")
    ask.require_confirmed(name)
    try:
        accepted = json.loads(ask.pasted("accepted"))
    except ValueError:
        accepted = None
    if not isinstance(accepted, dict):
        raise UsageError("The form has no preview of the reset. Nothing was changed.", hint="Preview it again")
    return {"table": name, "name": ask.text("topic"), "to": ask.text("to") or "", "accepted": accepted}
