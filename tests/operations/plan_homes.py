"""Plans and pushes in homes of `warehouse_homes`, whose rows are any bytes; and a process that dies on its way."""

from __future__ import annotations

import sys
from pathlib import Path

from hybrid.config.settings import load_settings
from hybrid.home.home import Home
from hybrid.lake import plans, pushes
from hybrid.lake.plans import DesiredState, DesiredStateRecord
from hybrid.lake.pushes import OpenReplacement, Push, PushedSegment
from hybrid.progress import Silent
from hybrid.replace.opening import open_replacement
from hybrid.replace.pushing import publish_push
from hybrid.store.plan_files import ROWS
from hybrid.table.plans import Plan

NOW = "2021-11-21T10:38:00.000+00:00"
ODD = "a (2) ü%41"


def make_plan(home: Home, plan_id: str = "backfill-1") -> None:
    """A plan with two files of rows and one of claims."""
    layout = home.layout("orders")
    plan = Plan(plan_id, "orders", NOW, "a test", {}, "id", 0, None, "", "", (), ())
    with home.bench.staging(layout, plan_id) as folder:
        for name in (f"rows/_hy_segment=a/part-{plan_id}.parquet", f"rows/_hy_segment={ODD}/part-0.parquet",
                     "claims/part-0.parquet"):  # fmt: skip
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(f"{plan_id} {name}".encode())
        (folder / "rows" / "_SUCCESS").touch()
        plans.publish(layout, folder, plan)


def wish(home: Home, desired: DesiredState, plan_id: str = "backfill-1", error: str | None = None) -> None:
    plans.want(home.layout("orders"), plan_id, DesiredStateRecord(desired, NOW, error))


def wish_of(home: Home, plan_id: str = "backfill-1") -> DesiredState:
    return plans.desired_state_of(home.layout("orders"), plan_id).wish


def open_one(home: Home, *segments: str) -> OpenReplacement:
    return open_replacement(home.spec("orders"), home.layout("orders"), ((), segments), created_at=NOW)


def push(home: Home, entry: OpenReplacement, segment: str, job: str = "replace-job") -> None:
    """What a job brings, without Spark."""
    layout = home.layout("orders")
    with home.bench.staging(layout, job) as folder:
        rows = folder / "push" / ROWS / f"_hy_segment={segment}"
        rows.mkdir(parents=True)
        (rows / f"part-{job}.parquet").write_bytes(f"{job} {segment}".encode())
        pushed = Push(0, "job.yml", (), (PushedSegment(segment, 1, 0, None, None),))
        publish_push(layout, entry, pushed, folder / "push")


def pushed_rows(home: Home, entry: OpenReplacement) -> dict[str, list[str]]:
    """The rows of each pushed segment, as the end of a replacement reads them."""
    layout = home.layout("orders")
    folders = {
        name: pushes.segment_folder(layout, entry.id, push, name)
        for name, (push, _) in pushes.pushed(layout, entry.id).items()
    }
    return {name: [path.read_text() for path in folder.glob("*.parquet")] for name, folder in folders.items()}


def files(home: Home) -> dict[str, bytes]:
    """What a home has of plans, by path, but for locks and the names of pushes."""
    folder = home.layout("orders").plans
    found = {str(path.relative_to(folder)): path for path in sorted(folder.rglob("*")) if path.is_file()}
    left_out = ("lock", "running", "push.key", "_SUCCESS")
    return {name: path.read_bytes() for name, path in found.items() if not name.endswith(left_out)}


def main() -> None:
    home = Home(load_settings(home=Path(sys.argv[1])), Silent())
    match sys.argv[2]:
        case "plan":
            make_plan(home)
        case "run":
            wish(home, DesiredState.RUN)
        case "cancel":
            wish(home, DesiredState.CANCEL)
            plans.discard_rows(home.layout("orders"), "backfill-1")
        case "push":
            push(home, pushes.open_replacements(home.layout("orders"))[0], "x")


if __name__ == "__main__":
    main()
