"""The plan of a backfill as a JSON document: what `backfill plan -o` writes and `backfill run` reads back."""

from __future__ import annotations

from typing import Any

from hybrid.runtime.json_values import instant, json_document
from hybrid.table.plans import Plan


def plan_document(plan: Plan) -> dict[str, Any]:
    """The plan of a backfill: what PLAN.json holds. Times as in a segment; row counts."""
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
    told = ("id", "table", "base_revision", "created_at", "change", "reason", "user", "sentence", "rows", "bytes")
    more = ("seconds", "checks", "failed_checks", "warnings", "inputs")
    shown = {name: getattr(plan, name) for name in (*told, *more)}
    return json_document({**shown, "buckets": buckets})
