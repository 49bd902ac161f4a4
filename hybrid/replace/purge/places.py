"""Every place below a table's folder that holds rows in files: current versions and remains of others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hybrid.config.table_config import Half, TableSpec
from hybrid.lake import plans, pushes
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.lake.plans import DesiredState
from hybrid.store.plan_files import CLAIMS
from hybrid.table.columns import SEGMENT, files_segment, rejected_segment

STAGED = "staged"
_LOG = "_delta_log"


@dataclass(frozen=True)
class Place:
    """Data files of a half: of its current version (`current`), or older and left behind; or staged files."""

    name: str
    current: bool
    files: tuple[Path, ...]


def halves_of(spec: TableSpec, layout: TableLayout) -> dict[Half, HalfSnapshot]:
    """The newest versions. OFFLINE is opened first, so its boundary hides only rows that the REALTIME version has."""
    return {half: open_half(layout.half(half)) for half in (Half.OFFLINE, Half.REALTIME) if half in spec.halves}


def places(layout: TableLayout, halves: Iterable[tuple[Half, HalfSnapshot]]) -> list[Place]:
    """All places with data files of the table.

    Files staged by operations in progress are not included: they are new and belong to these. Claims of plans are not
    included either: they hold only coordinates.
    """
    result = []
    for half, snapshot in halves:
        current = {Path(file.path) for file in snapshot.files}
        result.append(Place(half.value, True, tuple(sorted(current))))
        result.append(Place(half.value, False, tuple(sorted(files_in(layout.half(half)) - current))))
    staged = (path for path in files_in(layout.plans) if CLAIMS not in path.relative_to(layout.plans).parts)
    result.append(Place(STAGED, False, tuple(sorted(staged))))
    return result


def clear_ended(layout: TableLayout) -> None:
    """Removes staged rows that nobody will swap in: of ended plans and replacements, left by killed processes."""
    for plan_id in plans.plan_ids(layout):
        if plans.desired_state_of(layout, plan_id).wish in {DesiredState.CANCEL, DesiredState.ENDED}:
            plans.remove_rows(layout, plan_id)  # on a store `PurgedStore.clear_plans` removes those of all at once
        elif _is_done(layout, plan_id):
            plans.discard_rows(layout, plan_id)
    for entry, state in pushes.left_behind(layout):
        pushes.remove_left(layout, entry.id, state)


def _is_done(layout: TableLayout, plan_id: str) -> bool:
    """Whether commits hold all that a plan has staged, even if its run did not record that."""
    plan = plans.find_plan(layout, plan_id)
    half = open_half(layout.half(Half.OFFLINE))
    return plan is not None and not plan.left(plans.corrected_spans(half, plan_id))


def files_in(folder: Path) -> set[Path]:
    """The Parquet files in a folder, without a Delta log's."""
    return {path for path in folder.rglob("*.parquet") if _LOG not in path.parts and path.is_file()}


def is_rejected(spec: TableSpec, path: Path) -> bool:
    """Whether a file of REALTIME holds rejected rows."""
    return path.parent.name == f"{SEGMENT}={rejected_segment(spec.name)}"


def is_record(spec: TableSpec, path: Path) -> bool:
    """Whether a file of REALTIME records which files flows have read, and holds no rows."""
    return path.parent.name == f"{SEGMENT}={files_segment(spec.name)}"
