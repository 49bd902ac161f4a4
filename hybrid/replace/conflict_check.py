"""Whether acts that came since a swap was planned concern it.

One that does not is stepped over: a backfill of hundreds of commits would keep every swap from ever committing.

  since the plan                                       the swap
  its own segments were written anew, or a new one     is planned anew
    came under a name that it would give
  another segment was swapped, added or removed        commits
  the boundary or the columns changed                  is planned anew
  a commit that is not ours                            is planned anew: it may hide rows of a file by other means
  anything, and equal rows are netted on the table     is planned anew: a delete hides a row of any segment
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.config.table_config import TableSpec
from hybrid.lake.log import HalfSnapshot, acts_between, texts
from hybrid.table.state import Act


def is_overtaken(
    spec: TableSpec,
    base: HalfSnapshot,
    current: HalfSnapshot,
    names: tuple[Sequence[str], Sequence[str]],
    act_id: str,
) -> bool:
    """Whether a swap planned on `base` must be planned anew on `current`; `names` are its segments from and to.

    What else a plan has looked at is for the planner to compare. It reads the log alone: files never change under one
    name, and every act says which segments it touched.
    """
    if current.table_id != base.table_id:
        return True
    if current.version == base.version:
        return False
    if spec.nets_deletes and names[0]:
        return True
    if (current.offline.boundary, current.columns) != (base.offline.boundary, base.columns):
        return True
    acts = acts_between(base.path, base.version, current.version)
    if acts is None or len(acts) < current.version - base.version:
        return True
    touched = {*names[0], *names[1]}
    return any(_concerns(act, act_id, touched) for act in acts) or _files(base, touched) != _files(current, touched)


def _concerns(act: Act, own_id: str, touched: set[str]) -> bool:
    """Whether an act names a segment of the swap, or is the swap itself, brought to its end by a JVM left behind."""
    theirs = (name for key in ("segments_from", "segments_to", "segments") for name in texts(act.detail.get(key)))
    return act.id == own_id or not touched.isdisjoint(theirs)


def _files(half: HalfSnapshot, segments: set[str]) -> set[str]:
    return {file.path for file in half.files if file.segment in segments}
