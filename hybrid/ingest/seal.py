"""Seals consuming segments by a commit without rows: only the state records that they are closed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from hybrid.config.table_config import Half
from hybrid.errors import NotFoundError
from hybrid.lake.commit_context import LockedHalf, new_act_id
from hybrid.lake.log import HalfSnapshot
from hybrid.lake.table_context import TableContext
from hybrid.runtime.sentence_repr import shown_as_sentence
from hybrid.table.boundary import PartitionKey
from hybrid.table.state import next_act


@shown_as_sentence
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


def seal_consuming(table: TableContext, name: str | None = None) -> SealReport:
    """Seal every consuming segment of a table, or the segment `name`, as they are committed now.

    Raises NotFoundError when there is no consuming segment of that name.
    """
    with table.lock(Half.REALTIME, with_spark=False) as half:
        snapshot = table.half(Half.REALTIME)
        consuming = {key: segment.name for key, segment in snapshot.realtime.consuming.items()}
        if name is not None and name not in consuming.values():
            raise NotFoundError.named("Consuming segment", name, consuming.values())
        keys = {key for key, segment in consuming.items() if name in (None, segment)}
        if not keys:
            return SealReport((), None, f"Nothing to seal: table '{table.name}' has no consuming segment.")
        version = commit_seal(table, half, snapshot, keys)
    names = tuple(sorted(consuming[key] for key in keys))
    return SealReport(names, version, f"Sealed {', '.join(names)} of '{table.name}'.")


def commit_seal(table: TableContext, half: LockedHalf, snapshot: HalfSnapshot, keys: Collection[PartitionKey]) -> int:
    """Commit that the consuming segments of `keys` are sealed."""
    state = snapshot.realtime
    still_consuming = {key: segment for key, segment in state.consuming.items() if key not in keys}
    detail = {"sealed": sorted(state.consuming[key].name for key in keys)}
    act = next_act(state, new_act_id("seal"), "seal", table.bench.now_iso(), detail)
    return half.commit_state(replace(state, act=act, consuming=still_consuming), planned=snapshot.version)
