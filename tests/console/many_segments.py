"""A table of many segments, by log entries alone: no file of them exists, and the timeline reads none."""

from __future__ import annotations

import json
from pathlib import Path

from hybrid.api.hybrid import Hybrid
from hybrid.config.table_config import Half
from tests.serve.app import CONSUMING, MOVED, lay_orders

HOUR = 3_600_000
YEAR_HOURS = 365 * 24
TIMES = ("_hy_time", "ts")
COMMIT = {"commitInfo": {"timestamp": 0, "operation": "WRITE"}}


def lay_many(home: Hybrid, offline: int, realtime: int, partitions: int = 4) -> None:
    """The table orders with so many further segments over a year; realtime ones are of four partitions."""
    layout = lay_orders(home).layout
    step = YEAR_HOURS * HOUR // max(1, offline)
    names = [f"orders_{number * step}_{number * step + HOUR}_1" for number in range(offline)]
    _append(layout.half(Half.OFFLINE), MOVED, names, step, partitions)
    step = YEAR_HOURS * HOUR // max(1, realtime)
    names = [f"orders__{number % partitions}__{number + 10}__20210924T0602Z" for number in range(realtime)]
    _append(layout.half(Half.REALTIME), CONSUMING, names, step, partitions)


def commit_nothing(home: Hybrid, half: Half = Half.OFFLINE) -> None:
    """A further version of a half, without a change."""
    log = home.context.table("orders").layout.half(half) / "_delta_log"
    newest = max(int(entry.stem) for entry in log.glob("*.json"))
    (log / f"{newest + 1:020d}.json").write_text(json.dumps(COMMIT))


def _append(half: Path, like: str, names: list[str], step_ms: int, partitions: int) -> None:
    """One commit that adds a file like that of segment `like` for each name, `step_ms` after the one before."""
    entries = sorted((half / "_delta_log").glob("*.json"))
    added = [json.loads(line) for entry in entries for line in entry.read_text().splitlines() if '"add"' in line]
    model = next(action["add"] for action in added if like in json.dumps(action["add"]["partitionValues"]))
    lines = [json.dumps(COMMIT)]
    for number, name in enumerate(names):
        lines.append(json.dumps({"add": _file(model, like, name, number, step_ms, partitions)}))
    newest = int(entries[-1].stem)
    (half / "_delta_log" / f"{newest + 1:020d}.json").write_text("\n".join(lines))


def _file(model: dict, like: str, name: str, number: int, step_ms: int, partitions: int) -> dict:
    stats = json.loads(model["stats"])
    for column in TIMES:
        stats["minValues"][column], stats["maxValues"][column] = number * step_ms, number * step_ms + HOUR - 1
    for side in ("minValues", "maxValues"):
        stats[side]["_hy_partition"] = number % partitions
        stats[side]["_hy_offset"] = 1000 + number
    stats["numRecords"] = 100 + number % 900
    values = {key: name if value == like else value for key, value in model["partitionValues"].items()}
    return {**model, "path": f"{name}/part-{number}.parquet", "partitionValues": values, "stats": json.dumps(stats)}
