"""The page of a table's ingestion: connectors, partitions, and the rows that were rejected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import APIRouter

from hybrid.api.table import Table
from hybrid.config.table_config import Half
from hybrid.errors import HybridError, error_document
from hybrid.operations.partitions import PartitionStatus, StreamEnds, partitions_of
from hybrid.operations.run_list import RunFilter, list_runs
from hybrid.rpc import json_views as views
from hybrid.rpc.verbs import INGEST, REPLAY, SEAL
from hybrid.runtime.json_values import instant, json_value
from hybrid.serve.console.copies import copies_of
from hybrid.serve.console.durations import about
from hybrid.serve.console.overview import overview_of, short_run
from hybrid.serve.console.page import Json, PageRequest, Threads, change, page, target_block
from hybrid.serve.lag_history import catch_up_s
from hybrid.table.state import RESET

router = APIRouter(include_in_schema=False)
_PATH = "/ui/tables/{table}/ingestion"
_REJECTED_MAX = 50
_VALUE_MAX = 2000  # characters of a rejected message
_WORKS = frozenset({INGEST, SEAL, RESET, REPLAY})
_LIVE, _REJECTED = "live", "rejected"


@page(router, _PATH, template="ingestion.html", title="Ingestion", threads=Threads.OVERVIEW)
def ingestion_page(ask: PageRequest, table: str) -> Json:
    """A table's ingestion. `rejected=all` adds the rejected rows that were replayed since.

    The parts of the page that update themselves leave out what they do not show.
    """
    shown = ask.call("table_show", table=table)
    name, block = shown["name"], target_block(ask.request)
    copied = copies_of(
        ask.url, "connectors", {"table": name}, cli=("connector", "list", name),
        python=f"hy.table({name!r}).connectors.statuses()",
    )  # fmt: skip
    has_realtime = Half.REALTIME.value in shown["halves"]
    return {
        "table": name,
        "halves": shown["halves"],
        "has_stream": shown["topic"] is not None,
        "brokers": shown["brokers"],
        "copies": copied,
        **({} if block == _REJECTED else _live(ask, name, has_realtime)),
        "rejected": _rejected(ask, name) if has_realtime and block != _LIVE else None,
    }


def _live(ask: PageRequest, name: str, has_realtime: bool) -> Json:
    """What changes while rows arrive."""
    ref = ask.context.pinned(name)
    table = Table(ask.context.home.context, ref)
    card = overview_of(ask, name)  # first: its look at Kafka serves the ends, too
    ends = ask.context.stream_ends.get(name) if ref.spec.stream is not None else StreamEnds()
    now_ms = ask.context.home.context.now_ms()
    partitions = partitions_of(ref, ends, now_ms)
    pause = json_value(vars(table.pause_status())) if has_realtime else None
    problem = None
    if card is not None and not card.status.healthy and not (pause and pause["paused"]):
        problem = {"sentence": card.status.state, "command": card.status.hint or f"hybrid logs --table {name}"}
    # Without asking Kafka: its ends are kept for a while, and asked once for all who look.
    statuses = views.connector_views(table.connectors.statuses(ask_kafka=False))
    runs = list_runs(ask.context.home.context, RunFilter(name))
    return {
        "pause": pause,
        "problem": problem,
        "unreachable": unreachable_view(ends),
        "totals": totals_of(partitions, about(catch_up_s(ask.context.lag.samples(name, now_ms), now_ms))),
        "connectors": connectors_view(statuses, partitions),
        "is_configured": not ref.spec.connectors,
        "partitions": [partition_view(found) for found in partitions],
        "rejected_count": ref.half(Half.REALTIME).realtime.rejected if has_realtime else 0,
        "active": [short_run(run) for run in runs if run.incomplete and run.type in _WORKS],
    }


def totals_of(partitions: Sequence[PartitionStatus], catch_up: str | None) -> Json:
    """All partitions together; the lag is not known where the end of one of them is not."""
    lags = [found.lag for found in partitions]
    known = [lag for lag in lags if lag is not None]
    times = [found.committed_until_ms for found in partitions if found.committed_until_ms is not None]
    rate = sum(found.rows_per_minute for found in partitions)
    return {
        "lag": sum(known) if known and len(known) == len(lags) else None,
        "committed_until": instant(max(times, default=None)),
        "catch_up": catch_up,
        "rows_per_minute": round(rate, 1),
    }


def connectors_view(statuses: Sequence[Mapping[str, Any]], partitions: Sequence[PartitionStatus]) -> Json:
    """The connectors; those of Kafka with the lag of the partitions, where that is known."""
    lag = totals_of(partitions, None)["lag"]
    return [
        {**found, "lag": lag} if lag is not None and found["transport"] == "kafka_input" else dict(found)
        for found in statuses
    ]


def unreachable_view(ends: StreamEnds) -> Json:
    """Why Kafka's offsets are not known; None where they are."""
    return None if ends.problem is None else {"error": ends.problem, "hint": ends.hint}


def partition_view(found: PartitionStatus) -> Json:
    """One partition. `committed_until` is what is shown as its lag in time while rows are missing."""
    committed = instant(found.committed_until_ms)
    return {**_without(vars(found), "committed_until_ms"), "lag": found.lag, "committed_until": committed}


def _without(values: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key != name}


def _rejected(ask: PageRequest, name: str) -> Json:
    everything = ask.parameter("rejected") == "all"
    rows: Json = []
    problem: Json = None
    try:
        rows = ask.call("rejected", table=name, limit=_REJECTED_MAX, everything=everything)
    except HybridError as error:  # it reads files within the limits of a statement; the rest of the page needs none
        problem = error_document(error)
    return {
        "rows": [rejected_view(row) for row in rows],
        "problem": problem,
        "everything": everything,
        "is_cut": len(rows) == _REJECTED_MAX,
    }


def rejected_view(row: Mapping[str, Any]) -> Json:
    """A rejected row; of its message not more than a page shows."""
    value = row["value"]
    cut = value is not None and len(value) > _VALUE_MAX
    return {**row, "value": value[:_VALUE_MAX] if cut else value, "value_is_cut": cut}


# Changes: `serve/console/table_changes.py` has pause and resume of the whole table.


@change(router, f"{_PATH}/connectors/pause", verb="connector_pause", then=_PATH, template="connector_change.html")
def connector_pause_change(ask: PageRequest, table: str) -> Json:
    """Pauses the connector `name`, or all."""
    return _named(ask, table)


@change(router, f"{_PATH}/connectors/start", verb="connector_start", then=_PATH, template="connector_change.html")
def connector_start_change(ask: PageRequest, table: str) -> Json:
    """Starts the connector `name`, or all."""
    return _named(ask, table)


@change(router, f"{_PATH}/seal", verb="seal", then=_PATH)
def seal_change(ask: PageRequest, table: str) -> Json:
    """Seals the consuming segment `name`, or all, after committing what Kafka holds."""
    return _named(ask, table)


@change(router, f"{_PATH}/replay", verb="rejected_replay", then=_PATH)
def replay_change(ask: PageRequest, table: str) -> Json:
    """Replays rejected rows that convert now; with `dry_run` it only says which would."""
    return {"table": table, "dry_run": True} if ask.is_checked("dry_run") else {"table": table}


def _named(ask: PageRequest, table: str) -> Json:
    name = ask.text("name")
    return {"table": table} if name is None else {"table": table, "name": name}
