"""Logs that vacuum has cleaned are no damage, and what they told is still known."""

from __future__ import annotations

import pytest
from deltalake import DeltaTable

from hybrid.config.table_config import Half
from hybrid.config.task_schedules import VACUUM_TASK
from hybrid.rpc.verbs import VERBS
from tests.doctor.conftest import Patient, row
from tests.lake.aged import age


def cleaned(orders: Patient) -> None:
    """Both halves with twelve commits of long ago, and without the entries that nothing needs."""
    halves = orders.halves()
    for number in range(12):
        halves.commit_offline([row(0, 1000, segment=f"o{number}")])
        halves.commit_realtime([])
    for half in Half:
        path = orders.layout.half(half)
        age(path, 40)
        DeltaTable(str(path)).create_checkpoint()
    home = orders.hybrid()
    report = VERBS["task_run"].call(home, table="orders", type=VACUUM_TASK)
    home.close()
    assert report["commits"] == {"OFFLINE": 13, "REALTIME": 13} and not orders.log(Half.OFFLINE, 0).exists()


@pytest.mark.slow
def test_nothing_is_found(orders: Patient) -> None:
    cleaned(orders)
    assert orders.examine() == []


@pytest.mark.slow
def test_a_definition_is_still_written_anew(orders: Patient) -> None:
    before = orders.hybrid().context.definitions.find("orders")
    cleaned(orders)
    orders.definition.write_text("{")
    (mended,) = orders.examine(repair=True)
    assert mended.repair is not None and mended.repair.startswith("Wrote the definition again")
    after = orders.hybrid().context.definitions.find("orders")
    assert before is not None and after is not None
    assert (after.schema_doc, after.realtime_doc) == (before.schema_doc, before.realtime_doc)
    assert orders.examine() == []
