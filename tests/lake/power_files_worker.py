"""Uploads files to a server, and drops tables, while syncs are recorded. After each it cuts the power and looks."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

import yaml
from starlette.testclient import TestClient

from hybrid import drop as drops
from hybrid import durable
from hybrid.api import Hybrid, TableDocuments
from hybrid.catalog.definitions import Definitions
from hybrid.progress import Silent
from hybrid.serve.app import build_app
from hybrid.serve.context import Limits
from hybrid.spec.settings import load_settings
from tests.lake.power_failure import cut_power
from tests.lake.power_worker import lost
from tests.serve.app import OFFLINE, SCHEMA

CONFIG = quote(json.dumps({"inputFormat": "json"}))
UPLOAD = f"/ingestFromFile?tableNameWithType=orders_OFFLINE&batchConfigMapStr={CONFIG}"


STEPS = (
    *("create", "drop", "undrop", "drop", "create", "drop", "create", "purge"),
    *("create", "drop", "create", "drop", "purge"),
)


class Machine:
    """A home, and what is left of it when the power fails now."""

    def __init__(self, home: Path) -> None:
        self.folder, self._failures = home, 0
        self.home = Hybrid(load_settings(home=home), Silent())

    def create(self) -> None:
        self.home.create_table(TableDocuments((SCHEMA, "schema"), [(OFFLINE, "config")]))

    def after_failure(self, *, brings_back: bool = False) -> Path:
        self._failures += 1
        after = self.folder.with_name(f"after-{self._failures}")
        cut_power(Path(os.environ["SYNC_RECORD"]), self.folder, after, brings_back=brings_back)
        return after


def queued(home: Path, folder: Path) -> list[dict[str, Any]]:
    """The runs that wait in a copy of the home `folder`, each with the number of bytes and rows of its file there."""
    with closing(sqlite3.connect(f"file:{home / 'catalog.db'}?mode=rw", uri=True)) as catalog:
        found = catalog.execute("SELECT id, state, arguments FROM runs ORDER BY created_at, id").fetchall()
    runs = []
    for run, state, arguments in found:
        uri = yaml.safe_load(json.loads(arguments)["spec"])["inputDirURI"]
        file = home / Path(uri.removeprefix("file://")).relative_to(folder)
        data = file.read_bytes() if file.exists() else b""
        runs.append({"run": run, "state": state, "bytes": len(data), "rows": data.count(b"\n")})
    return runs


def upload(machine: Machine) -> None:
    """Each upload is acknowledged as a run that goes on: no pipeline takes it up."""
    machine.create()
    client = TestClient(build_app(machine.home, Limits(run_wait_s=0.05), "http://x", hosts=None))
    for rows in (1, 50_000):
        body = b"".join(b'{"order_id": %d, "ts": 1000}\n' % number for number in range(rows))
        answer = client.post(UPLOAD, files={"file": ("orders.json", body)})
        after = machine.after_failure()
        emit(
            {
                "status": answer.status_code,
                "answer": answer.text,
                "sent": {"bytes": len(body), "rows": rows},
                "runs": queued(after, machine.folder),
            }
        )


def drop(machine: Machine) -> None:
    """What is dropped can be brought back, what is purged cannot."""
    for step in STEPS:
        if step == "create":
            machine.create()
        elif step == "undrop":
            machine.home.undrop_table("orders")
        else:
            machine.home.drop_table("orders", purge=step == "purge")
        after = machine.after_failure()
        worst = machine.after_failure(brings_back=True)
        emit(
            {
                "step": step,
                "table": Definitions(after / "warehouse").find("orders") is not None,
                "copies": len(list(after.glob("warehouse/.dropped/*"))),
                "lost": lost(machine.folder, after),
                "left": [path.name for path in worst.glob("warehouse/**/*orders*") if path.suffix != ".lock"],
            }
        )


def emit(found: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(found) + "\n")


def main() -> None:
    home, (scenario,) = Path(sys.argv[1]), json.loads(sys.argv[2])
    if scenario == "upload-unsynced":
        durable.sync_files = lambda paths, root: None
    if scenario == "drop-unsynced":
        drops.durable = SimpleNamespace(**{**vars(durable), "sync": lambda path: None})
    {"upload": upload, "drop": drop}[scenario.partition("-")[0]](Machine(home))


if __name__ == "__main__":
    main()
