"""Schema evolution of a half: a commit without rows that adds and widens columns, before the definition changes.

The two halves and the definition cannot change in one commit. What a crash in between leaves:

    OFFLINE changed           columns that nobody names, and types wider than their values: queries answer as before
    OFFLINE and REALTIME      and ingestion continues; operations that rewrite rows are refused until the change ends
    the definition too        done

Repeating the change completes it. So a definition never names a column, or values, that a half cannot hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hybrid.config.evolution import is_wider
from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import SpecError
from hybrid.lake.commit import commit_columns
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.create import delta_fields
from hybrid.lake.layout import TableLayout, physical_columns, spark_columns
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.table_context import TableContext
from hybrid.schema.schema import FieldSpec
from hybrid.schema.types import DataType
from hybrid.table.state import next_act


def evolve_half(table: TableContext, half: Half) -> None:
    """Add the columns of `spec` that a half lacks, and widen its narrower types, if any.

    Existing rows hold nulls in a new column. Raises SpecError when a column exists in an incompatible type.
    """
    path = table.layout.half(half)
    if not is_behind(table.spec, table.layout, half):
        return
    with table.lock(half, with_spark=False) as locked:
        current = open_half(path)
        new, widened = _missing(table.spec, half, current)
        if not new and not widened:
            return
        # The commit carries the documents, as the table's creation does.
        documents = {
            "schema": table.spec.schema_doc,
            "realtime": table.spec.realtime_doc,
            "offline": table.spec.offline_doc,
        }
        brokers = table.spec.stream.brokers if table.spec.stream else None
        detail = {"columns": new, "widened": widened, **documents, "brokers": brokers}
        act = next_act(current.state, new_act_id("evolve"), "evolve", table.bench.now_iso(), detail)
        fields = delta_fields(table.spec, half, {*new, *widened})
        commit_columns(path, replace(current.state, act=act), fields, widened, locked.start_spark)


def is_behind(spec: TableSpec, layout: TableLayout, half: Half) -> bool:
    """Whether a half lacks columns of `spec` or has narrower ones. SpecError when a column has an incompatible type."""
    return any(_missing(spec, half, open_half(layout.half(half))))


def _missing(spec: TableSpec, half: Half, current: HalfSnapshot) -> tuple[list[str], list[str]]:
    """The columns that a half lacks, and the columns that it has in a narrower type."""
    there = _types(current)
    new = [name for name, _ in physical_columns(spec, half) if name.lower() not in there]
    return new, [field.name for field in spec.schema.fields if _becomes_wider(spec, half, field, there)]


def _types(half: HalfSnapshot) -> Mapping[str, str]:
    """The Spark types of a half's columns, by lower-case name."""
    return {name.lower(): kind for name, kind in spark_columns(half.columns).items()}


def _becomes_wider(spec: TableSpec, half: Half, field: FieldSpec, there: Mapping[str, str]) -> bool:
    """Whether a half has a column in a narrower type. Raises SpecError when its type is a different one."""
    stored = there.get(field.name.lower(), field.spark_type)
    if stored == field.spark_type:
        return False
    would_be = {kind: replace(field, data_type=kind).spark_type for kind in DataType}
    if any(stored == would_be[kind] for kind in DataType if is_wider(kind, field.data_type)):
        return True
    meant = next((kind for kind in DataType if is_wider(field.data_type, kind) and stored == would_be[kind]), None)
    if meant is not None:
        raise SpecError(
            f"Table '{spec.name}' holds column '{field.name}' as {stored} in {half} already: an earlier change of it "
            f"to {meant} did not end. Nothing was changed.",
            hint=f"Make '{field.name}' {meant}: apply that change again (hybrid table apply), then this one; what a "
            "flow brings, by a cast or a schema hint.",
        )
    raise SpecError(
        f"Table '{spec.name}' holds column '{field.name}' as {stored} in {half}, and it comes as {field.spark_type} "
        "now. Nothing was changed.",
        hint="Bring it in that type, by a cast or a schema hint, or under another name.",
    )
