"""Adds columns to a half: an act without rows, which comes before the definition that names them.

A death between the two leaves columns that nobody names; who adds them again finds them there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from deltalake import DeltaTable, Schema

from hybrid.errors import SpecError
from hybrid.lake.commit import commit_act
from hybrid.lake.create import arrow_schema
from hybrid.lake.layout import TableLayout, ddl_of, physical_columns
from hybrid.lake.log import open_half
from hybrid.lake.workbench import Workbench, new_act_id
from hybrid.spec.table_config import Half, TableSpec
from hybrid.table.state import next_act


def add_columns(bench: Workbench, spec: TableSpec, layout: TableLayout, half: Half) -> None:
    """Gives a half the columns of `spec` that it has not yet. Rows that are there hold nulls in them."""
    path = layout.half(half)
    with bench.lock(layout, half):
        current = open_half(path)
        there = {field.name.lower(): field.type for field in DeltaTable(str(path)).schema().fields}
        wanted = physical_columns(spec, half)
        new = [name for name, _ in wanted if name.lower() not in there]
        _refuse_other_types(spec, half, there)
        if not new:
            return
        # The documents go with the data, as at the creation.
        documents = {"schema": spec.schema_doc, "realtime": spec.realtime_doc, "offline": spec.offline_doc}
        detail = {"columns": new, **documents, "brokers": spec.stream.brokers if spec.stream else None}
        act = next_act(current.state, new_act_id("evolve"), "evolve", bench.now_iso(), detail)
        nothing = bench.spark.createDataFrame([], ddl_of(wanted))
        commit_act(nothing, path, replace(current.state, act=act), planned=current.version, evolve=True)


def _refuse_other_types(spec: TableSpec, half: Half, there: Mapping[str, object]) -> None:
    """SpecError when a half has a column of that name in another type: one that was added, and never named."""
    wanted = arrow_schema(spec, half)
    stored = {name.lower(): Schema.from_arrow(wanted).fields[at].type for at, name in enumerate(wanted.names)}
    for name, kind in stored.items():
        if name in there and there[name] != kind:
            raise SpecError(
                f"Table '{spec.name}' holds column '{name}' as {there[name]} in {half}, and it comes as {kind} now.",
                hint="Bring it in that type, by a cast or a schema hint, or under another name.",
            )
