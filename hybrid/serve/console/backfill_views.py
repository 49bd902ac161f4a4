"""View models of backfills: the progress of each bucket, sample rows, history, and what can be done in a state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from hybrid.catalog.run_record import RunRecord
from hybrid.operations import backfill_status as states
from hybrid.operations.result_diff import NUMERIC
from hybrid.runtime.json_values import epoch_ms, instant
from hybrid.serve.console.rendering import value_text
from hybrid.sql.vocabulary import spelled_name
from hybrid.table.lineage import MERGE

Json = dict[str, Any]
BUCKETS_PER_PAGE = 25
HISTORY_MAX = 100
SAMPLES_MAX = 20
_SAMPLE_COLUMNS, _SAMPLE_COLUMNS_MAX = 6, 12
_STATEMENT_COLUMNS_MAX = 4
_NUMBERS = ("rows_before", "rows_after", "added", "removed", "changed")
_PROGRESS = {states.DONE: "corrected", states.REVERTED: "reverted", states.CANCELLED: "not run"}
_RUN_TYPES = frozenset({"backfill", "revert"})
_STOPPED = frozenset({states.PAUSED, states.INTERRUPTED, states.FAILED})
# The fields of a request that the planning form has, as parameters of its address.
_FORM = ("start", "end", "update", "sql", "reason")
_CHECKBOXES = ("from_rejected", "from_kafka")


def totals(buckets: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The sums of rows over buckets."""
    return {name: sum(bucket[name] for bucket in buckets) for name in _NUMBERS}


def bucket_views(
    buckets: Sequence[Mapping[str, Any]],
    state: str,
    entries: Sequence[Mapping[str, Any]],
    runs: Sequence[RunRecord],
) -> list[Json]:
    """The buckets of a plan with their progress, since when, and by which run.

    Progress is `waiting`, `corrected`, `reverted`, or `not run` after a cancel.

    `entries` are the lineage entries of the backfill, newest first. A bucket that is not changed has no progress.
    """
    entry_of = {
        (instant(start), instant(end)): entry for entry in reversed(entries) for start, end in entry.get("buckets", ())
    }
    return [_bucket_view(bucket, state, entry_of.get((bucket["start"], bucket["end"])), runs) for bucket in buckets]


def _bucket_view(
    bucket: Mapping[str, Any], state: str, entry: Mapping[str, Any] | None, runs: Sequence[RunRecord]
) -> Json:
    progress: str | None = None
    if bucket["swap"] is not None:
        if entry is not None:
            progress = "reverted" if entry["state"] == "REVERTED" else "corrected"
        else:  # entries of a plan that has ended may have left the log
            progress = _PROGRESS.get(state, "waiting")
    return {
        **{name: bucket[name] for name in ("start", "end", "state", *_NUMBERS)},
        "progress": progress,
        "corrected_at": None if entry is None else entry["created_at"],
        "entry": None if entry is None else entry["id"],
        "run": None if entry is None else run_of(entry, runs),
    }


def run_of(entry: Mapping[str, Any], runs: Sequence[RunRecord]) -> str | None:
    """The id of the run that made a commit: it names the backfill, or ran at that time without naming one."""
    at = epoch_ms(entry["created_at"])
    found = [run for run in runs if run.type in _RUN_TYPES and _spans(run, at)]
    named = [run for run in found if run.arguments.get("backfill") == entry.get("backfill")]
    unnamed = [run for run in found if run.verb is None]
    return next((run.id for run in (*named, *unnamed)), None)


def runs_of(backfill: str, runs: Iterable[RunRecord]) -> list[RunRecord]:
    """The runs that planned, ran or reverted a backfill; runs of commands do not name it."""
    return [run for run in runs if backfill in (run.arguments.get("backfill"), _planned(run))]


def _planned(run: RunRecord) -> object:
    return run.report.get("id") if run.verb == "backfill_plan" and isinstance(run.report, dict) else None


def _spans(run: RunRecord, at_ms: int) -> bool:
    started, ended = run.started_at or run.created_at, run.finished_at
    # Entries written by older versions have whole seconds.
    return epoch_ms(started) // 1000 <= at_ms // 1000 and (ended is None or at_ms <= epoch_ms(ended) + 1000)


def page_of(buckets: Sequence[Json], number: str, all_buckets: bool) -> Json:
    """One page of buckets. Those that change, or all where `all_buckets` is set or none changes."""
    changed = [bucket for bucket in buckets if bucket["progress"] is not None]
    shown = list(buckets) if all_buckets or not changed else changed
    pages = max(1, -(-len(shown) // BUCKETS_PER_PAGE))
    current = min(max(1, int(number)), pages) if number.isascii() and number.isdigit() and len(number) < 9 else 1
    first = (current - 1) * BUCKETS_PER_PAGE
    return {
        "rows": shown[first : first + BUCKETS_PER_PAGE],
        "page": current,
        "pages": pages,
        "changed": len(changed),
        "total": len(buckets),
        "all": all_buckets,
    }


def sample_views(buckets: Sequence[Mapping[str, Any]], keys: Sequence[str], columns: Sequence[str]) -> Json:
    """A few rows that differ: the columns to show, and rows of cells with their values before and after."""
    samples = [sample for bucket in buckets for sample in bucket.get("samples", ())][:SAMPLES_MAX]
    differing = {
        name
        for sample in samples
        if sample["before"] and sample["after"]
        for name, value in sample["after"].items()
        if sample["before"].get(name) != value
    }
    known = list(columns) or sorted({name for sample in samples for name in sample["after"] or sample["before"]})
    first = [name for name in known if name in keys]
    few = [name for name in known if name in differing and name not in keys]
    rest = [name for name in known if name not in (*first, *few)]  # they say which row it is
    shown = [*first, *few, *rest][: max(_SAMPLE_COLUMNS, min(len(first) + len(few), _SAMPLE_COLUMNS_MAX))]
    rows = [
        {"change": sample["change"], "cells": [_cell(name, sample["before"], sample["after"]) for name in shown]}
        for sample in samples
    ]
    return {"columns": shown, "rows": rows}


def _cell(name: str, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> Json:
    return cell(None if before is None else before.get(name), None if after is None else after.get(name))


def cell(before: Any, after: Any, *, differs: bool | None = None) -> Json:
    """A value before and after, as texts; `delta` is the difference of numbers."""
    changed = before != after if differs is None else differs
    return {
        "before": value_text(before),
        "after": value_text(after),
        "differs": changed,
        "delta": _delta(before, after) if changed else None,
    }


def _delta(before: Any, after: Any) -> str | None:
    if not all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (before, after)):
        return None
    difference = after - before
    text = f"{difference:+,}" if isinstance(difference, int) else f"{difference:+,.6g}"
    return f"{text} ({difference / abs(before):+.1%})" if before else text


def default_statement(table: str, columns: Mapping[str, str], buckets: Sequence[Mapping[str, Any]]) -> str:
    """A statement whose result shows a change: the number of rows, and the sums of numbers that change."""
    counts: dict[str, int] = {}
    for bucket in buckets:
        for name, count in bucket.get("changed_columns", {}).items():
            counts[name] = counts.get(name, 0) + count
    named = [name for name in counts if columns.get(name) in NUMERIC]
    if not counts:
        named = [name for name, kind in columns.items() if kind in {"FLOAT", "DOUBLE", "BIG_DECIMAL"}]
    sums = [f"SUM({spelled_name(name)}) AS {spelled_name('sum_' + name)}" for name in named[:_STATEMENT_COLUMNS_MAX]]
    return f"SELECT {', '.join(['COUNT(*) AS row_count', *sums])}\nFROM {spelled_name(table)}"


def history(entries: Sequence[Mapping[str, Any]]) -> list[Json]:
    """What changed the offline half, newest first: who, when and why. The commits of one backfill are one item."""
    items: dict[str, Json] = {}
    for entry in entries:
        if entry["kind"] == MERGE:
            continue
        backfill = entry.get("backfill")
        known = items.get(backfill or entry["id"])
        if known is None:
            items[backfill or entry["id"]] = _history_item(entry)
            continue
        known["commits"] += 1
        for name in _NUMBERS:
            known[name] += entry.get(name) or 0
        known["result"] = None  # it told of one commit
        known["reason"], known["user"] = known["reason"] or entry["reason"], known["user"] or entry["user"]
        if entry["state"] == "ACTIVE":
            known["state"] = "ACTIVE"
    return list(items.values())[:HISTORY_MAX]


def _history_item(entry: Mapping[str, Any]) -> Json:
    names = (
        "id", "kind", "created_at", "state", "version", "result", "reason", "user", "change", "backfill", "reverts",
    )  # fmt: skip
    numbers = {name: entry.get(name) or 0 for name in _NUMBERS}
    return {**{name: entry.get(name) for name in names}, **numbers, "commits": 1}


def actions_of(status: Mapping[str, Any], *, busy: bool, active: bool, refused: bool) -> list[str]:
    """What can be done with a backfill. `busy`: a run waits or goes on; `active`: commits of it stand.

    The server decides again: the list only says which buttons make sense.
    """
    state = status["state"]
    if busy or state == states.RUNNING:
        return ["pause", "cancel"]
    if state == states.PLANNED:
        return ["run", "cancel"] if status["buckets_total"] and not refused else ["cancel"]
    found = {states.REFUSED: ["cancel"], states.CANCELLED: [], states.DONE: [], states.REVERTED: []}.get(state, [])
    if state in _STOPPED:
        found = ["resume", "cancel"]
    if active:
        found = [*found, "revert"]
    if status["taken"] and state in {states.CANCELLED, states.REVERTED}:
        found = [*found, "release"]
    return found


def planning_query(request: Mapping[str, Any]) -> str:
    """The query of the planning form's address that fills in a request again."""
    found = {name: request.get(name) for name in _FORM}
    found["delete" if request.get("delete") else "where"] = request.get("where")
    found["expect"] = "\n".join(map(str, request.get("expect") or ()))
    found |= {name: "on" for name in _CHECKBOXES if request.get(name) is True}
    return urlencode({name: value for name, value in found.items() if isinstance(value, str) and value})


def plan_words(table: str, request: Mapping[str, Any]) -> list[str]:
    """The words of the command line, after `hybrid`, that plan the same change."""
    words = ["backfill", "plan", table]
    options = {"start": "--from", "end": "--to", "update": "--update", "where": "--where", "input": "--input"}
    for name, option in (*options.items(), ("sql", "--sql"), ("reason", "--reason")):
        if request.get(name):
            words += [option, str(request[name])]
    flags = {"delete": "--delete", "from_rejected": "--from-rejected", "from_kafka": "--from-kafka"}
    words += [option for name, option in flags.items() if request.get(name)]
    for expectation in request.get("expect") or ():
        words += ["--expect", str(expectation)]
    return words
