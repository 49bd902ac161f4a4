"""Seals consuming segments by a commit without rows: only the state records that they are closed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import NotFoundError
from hybrid.lake.commit import commit_act
from hybrid.lake.commit_context import CommitContext, new_act_id
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.table.boundary import PartitionKey
from hybrid.table.state import next_act


@dataclass(frozen=True)
class SealReport:
    """The segments that were sealed, and a `sentence` about it."""

    segments: tuple[str, ...]
    version: int | None
    sentence: str

    @property
    def did_something(self) -> bool:
        """Whether something was committed."""
        return self.version is not None


def seal_consuming(bench: CommitContext, spec: TableSpec, layout: TableLayout, name: str | None = None) -> SealReport:
    """Seal every consuming segment of a table, or the segment `name`, as they are committed now.

    Raises NotFoundError when there is no consuming segment of that name.
    """
    with bench.lock(layout, Half.REALTIME):
        snapshot = open_half(layout.half(Half.REALTIME))
        consuming = {key: segment.name for key, segment in snapshot.realtime.consuming.items()}
        if name is not None and name not in consuming.values():
            raise NotFoundError.named("Consuming segment", name, consuming.values())
        keys = {key for key, segment in consuming.items() if name in (None, segment)}
        if not keys:
            return SealReport((), None, f"Nothing to seal: table '{spec.name}' has no consuming segment.")
        version = commit_seal(bench, layout, snapshot, keys)
    names = tuple(sorted(consuming[key] for key in keys))
    return SealReport(names, version, f"Sealed {', '.join(names)} of '{spec.name}'.")


def commit_seal(
    bench: CommitContext, layout: TableLayout, snapshot: HalfSnapshot, keys: Collection[PartitionKey]
) -> int:
    """Commit that the consuming segments of `keys` are sealed. Call it under the half's lock."""
    state, path = snapshot.realtime, layout.half(Half.REALTIME)
    still_consuming = {key: segment for key, segment in state.consuming.items() if key not in keys}
    detail = {"sealed": sorted(state.consuming[key].name for key in keys)}
    act = next_act(state, new_act_id("seal"), "seal", bench.now_iso(), detail)
    nothing = bench.spark.read.format("delta").load(str(path)).limit(0)
    return commit_act(nothing, path, replace(state, act=act, consuming=still_consuming), planned=snapshot.version)
