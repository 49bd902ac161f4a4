"""Whether commits since a swap was planned conflict with it.

A commit that does not conflict is ignored. Otherwise a backfill of hundreds of commits would keep every other swap
from committing.

  change since the plan                                consequence for the swap
  its own segments were rewritten, or a segment        planned again
    with one of its new names was added
  another segment was replaced, added or removed       commits
  the boundary or the columns changed                  planned again
  a commit of another writer                           planned again: it may hide rows of a file by other means
  any, on a table that nets deletes                    planned again: a delete hides a row of any segment
"""

from __future__ import annotations

from collections.abc import Sequence

from hybrid.config.table_config import TableSpec
from hybrid.lake.log import HalfSnapshot, texts
from hybrid.lake.log_entries import acts_between
from hybrid.table.state import Act


def is_overtaken(
    spec: TableSpec,
    base: HalfSnapshot,
    current: HalfSnapshot,
    names: tuple[Sequence[str], Sequence[str]],
    act_id: str,
) -> bool:
    """Whether a swap planned on `base` must be planned again on `current`; `names` are its old and new segments.

    The planner itself compares what else the plan depends on. This check reads only the log: files never change under
    one name, and every commit names the segments that it touched.
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
    """Whether an operation names a segment of the swap, or is the swap itself, committed by a dead process's JVM."""
    theirs = (name for key in ("segments_from", "segments_to", "segments") for name in texts(act.detail.get(key)))
    return act.id == own_id or not touched.isdisjoint(theirs)


def _files(half: HalfSnapshot, segments: set[str]) -> set[str]:
    return {file.path for file in half.files if file.segment in segments}
