"""The plan of a backfill as a JSON document: what `backfill plan -o` writes and `backfill run` reads back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hybrid.runtime.json_values import instant, json_document

if TYPE_CHECKING:
    from hybrid.table.plans import Plan


def plan_document(plan: Plan) -> dict[str, Any]:
    """The content of PLAN.json. Times are written as in a segment; counts are rows."""
    buckets = [
        {
            "start": instant(bucket.start),
            "end": instant(bucket.end),
            "state": bucket.state.value,
            **vars(bucket.counts),
            "swap": bucket.unit,
            "samples": bucket.samples,
        }
        for bucket in plan.buckets
    ]
    names = ("id", "table", "base_revision", "created_at", "change", "reason", "user", "sentence", "rows", "bytes")
    details = ("seconds", "checks", "failed_checks", "warnings", "inputs")
    fields = {name: getattr(plan, name) for name in (*names, *details)}
    return json_document({**fields, "buckets": buckets})
