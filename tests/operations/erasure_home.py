"""A home with the rows of a person in every kind of place, and a search through every byte below it."""

from __future__ import annotations

import copy
import json
import shutil
from pathlib import Path
from typing import Any

import yaml

from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.config.settings import load_settings
from hybrid.config.table_config import Half
from hybrid.lake.checkpoint import write_checkpoint
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.lineage_archive import keep_acts
from hybrid.lake.log import lineage_acts, open_half
from hybrid.operations.backfill_change import BackfillChange
from hybrid.operations.tables.create import _definition
from hybrid.progress import Silent
from hybrid.replace.backfill.options import BackfillOptions
from tests.query.halves import Halves
from tests.replace.backfill.lab import Lab, row
from tests.replace.purge.erasing import holding, move_all, reject, stream
from tests.serve.app import MOVE, OFFLINE, REALTIME, SCHEMA

HOUR = 3_600_000
NAME = "erase-me"
ORDER = 77_770_123  # an order of the person: first or last key of a file
WHERE = f"customer = '{NAME}'"
PAYER = f"payer = '{NAME}'"


def open_home(folder: Path, workbench: CommitContext) -> Hybrid:
    """A home on the session of the tests."""
    home = Hybrid(load_settings(home=folder), Silent())
    vars(home.context)["bench"] = CommitContext(lambda: workbench.spark, home.context.now_ms, Silent(), 2.0)
    return home


def new_table(home: Hybrid, halves: tuple[Half, ...] = (Half.REALTIME, Half.OFFLINE), **schema: Any) -> Lab:
    """The table orders, in hours, or with these changes to its schema. With a REALTIME half alone it has upsert."""
    document = {**copy.deepcopy(SCHEMA), **schema}
    name, configs = document["schemaName"], []
    for half, config in ((Half.REALTIME, REALTIME), (Half.OFFLINE, OFFLINE)):
        if half in halves:
            config = copy.deepcopy(config)
            config["tableName"], config["segmentsConfig"]["schemaName"] = name, name
            configs.append((config, half.value))
    if halves == (Half.REALTIME, Half.OFFLINE):
        configs[0][0]["task"]["taskTypeConfigsMap"][MOVE]["bucketTimePeriod"] = "1h"
    elif Half.REALTIME in halves:
        del configs[0][0]["task"]
        configs[0][0]["upsertConfig"] = {"mode": "FULL"}
    spec = home.validate(TableDocuments((document, "schema"), configs))
    lab = Lab(home.context.bench, Halves.create(home.settings.warehouse, spec), home.home)
    home.context.definitions.add(_definition(spec))
    if Half.REALTIME in halves:
        home.table(name).pause("no broker here")
    return lab


def fill(home: Hybrid, lab: Lab) -> None:
    """Rows of the person and of others: moved, late, corrected, and not moved yet; rejected messages."""
    moved = [row(ORDER, 10, customer=NAME, offset=1), row(2, 20), row(3, HOUR + 10, customer=NAME), row(4, HOUR + 20)]
    stream(lab, *moved)
    move_all(lab, moved[:2], "orders_0", HOUR)
    move_all(lab, moved[2:], "orders_1", 2 * HOUR)
    stream(lab, row(5, 9 * HOUR, customer=NAME, offset=NEW), row(6, 9 * HOUR + 1, offset=NEW + 1))
    reject(lab, b'{"order_id": "x", "customer": "erase-me"}', b'{"order_id": "x", "customer": "b"}')
    change = BackfillChange(update="amount = 5", where=WHERE)
    home.backfills.run(home.backfills.plan("orders", change).id, BackfillOptions())


NEW = 10**9 + 1  # beyond the frontier that `move_all` sets


def fill_places(home: Hybrid, lab: Lab) -> list[str]:
    """What is not a row of a half: plans, pushes, archives, logs, catalog, leftovers, a dropped copy.

    Returns the ids of the plan and the replacement that have staged rows of the person.
    """
    layout, folder = lab.halves.layout, home.home
    plan = home.backfills.plan("orders", BackfillChange(update="amount = 6", where=WHERE))
    stream(lab, row(7, 20 * HOUR, customer=NAME, offset=NEW + 2))
    segment = min(file.segment for file in lab.offline.files)
    entry = home.table("orders").replacing.start([segment], ["fresh"])
    source = folder.parent / "input"
    source.mkdir()
    (source / "rows.json").write_text(json.dumps({"order_id": 9, "customer": NAME, "amount": 1.0, "ts": 15}))
    (source / "spec.yml").write_text(yaml.safe_dump(_job(source)))
    home.run_job(source / "spec.yml", {})
    for half in Half:
        snapshot = open_half(layout.half(half))
        write_checkpoint(layout.half(half), snapshot.version)
    keep_acts(layout.half(Half.OFFLINE), lab.offline.table_id, lineage_acts(lab.offline))
    staged = layout.staging("killed")
    staged.mkdir(parents=True)
    shutil.copy(lab.realtime.files[0].path, staged / "part-0.parquet")
    for path in (folder / "spill" / "left.tmp", folder / "logs" / "cli.log", folder / "logs" / "query.log.1"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"ts": "2021-09-24T06:00:00.000Z", "message": f"delete where {WHERE}"}) + "\n")
    with home.context.catalog.runs.recorded("run-1", "orders", "job") as run:
        run.ended(f"Row 7: customer '{NAME}' is too long.", did_something=False)
    return [plan.id, entry.id]


def drop_copy(home: Hybrid) -> Path:
    """A copy of the table as a drop leaves it."""
    copied = home.settings.warehouse / ".dropped" / "orders@20210924T000000.000000Z"
    shutil.copytree(home.settings.warehouse / "orders", copied)
    return copied


def places_of(folder: Path) -> list[str]:
    """The files below a folder that hold the person's values, in a row or in their bytes."""
    return sorted({*holding(folder, NAME), *holding(folder, str(ORDER))})


def _job(source: Path) -> dict[str, Any]:
    return {
        "jobType": "SegmentCreationAndTarPush",
        "inputDirURI": str(source),
        "includeFileNamePattern": "glob:**/*.json",
        "recordReaderSpec": {"dataFormat": "json"},
        "tableSpec": {"tableName": "orders"},
        "segmentNameGeneratorSpec": {"type": "fixed", "configs": {"segment.name": "fresh"}},
    }
