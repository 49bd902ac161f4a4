"""Adds columns to a half: an act without rows, which comes before the definition that names them.

A death between the two leaves columns that nobody names; who adds them again finds them there.
"""

from __future__ import annotations

from dataclasses import replace

from deltalake import DeltaTable

from hybrid.lake.commit import commit_act
from hybrid.lake.layout import TableLayout, physical_columns
from hybrid.lake.log import open_half
from hybrid.lake.workbench import Workbench, new_act_id
from hybrid.spec.table_config import Half, TableSpec
from hybrid.table.state import next_act


def add_columns(bench: Workbench, spec: TableSpec, layout: TableLayout, half: Half) -> None:
    """Gives a half the columns of `spec` that it has not yet. Rows that are there hold nulls in them."""
    path = layout.half(half)
    with bench.lock(layout, half):
        current = open_half(path)
        there = {field.name.lower() for field in DeltaTable(str(path)).schema().fields}
        wanted = physical_columns(spec, half)
        new = [name for name, _ in wanted if name.lower() not in there]
        if not new:
            return
        # The documents go with the data, as at the creation.
        documents = {"schema": spec.schema_doc, "realtime": spec.realtime_doc, "offline": spec.offline_doc}
        detail = {"columns": new, **documents, "brokers": spec.stream.brokers if spec.stream else None}
        act = next_act(current.state, new_act_id("evolve"), "evolve", bench.now_iso(), detail)
        ddl = ", ".join(f"`{name}` {kind}" for name, kind in wanted)
        nothing = bench.spark.createDataFrame([], ddl)
        commit_act(nothing, path, replace(current.state, act=act), planned=current.version, evolve=True)
