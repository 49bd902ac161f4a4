"""What a run of merges did, or why it did nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hybrid.progress import counted


def left_out(read: int, written: int, *, rolled_up: bool = False) -> str:
    """What became of the rows that did not come out; nothing where all did."""
    if read == written:
        return ""
    return (
        f", {counted(read, 'row')} rolled up to {written}"
        if rolled_up
        else f", {counted(read - written, 'row')} left out"
    )


@dataclass(frozen=True)
class Merged:
    """One act of a `task`: `segments` of the bucket from `start` (epoch ms) became `into`. No `version`: a dry run."""

    task: str
    start: int
    segments: tuple[str, ...]
    into: tuple[str, ...]
    rows_read: int
    rows_written: int
    act: str | None = None
    version: int | None = None


@dataclass(frozen=True)
class MergeReport:
    """Every act in its order, and the segments that stay, by the reason why; `rows_read` and `rows_written` of all."""

    merged: tuple[Merged, ...]
    kept: Mapping[str, Sequence[str]]
    rows_read: int
    rows_written: int
    sentence: str
    dry_run: bool = False

    @property
    def committed(self) -> bool:
        """Whether something was committed."""
        return bool(self.merged) and not self.dry_run


@dataclass
class MergeFindings:
    """What a run has done so far; `kept` names, by level or the like, the segments that stay, by the reason why."""

    merged: list[Merged] = field(default_factory=list)
    kept: dict[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)

    def report(self, said: str, *, dry_run: bool) -> MergeReport:
        """The report of a run that has ended; `said` is the first part of its sentence."""
        read, written = (sum(getattr(one, key) for one in self.merged) for key in ("rows_read", "rows_written"))
        reasons = sorted({why for found in self.kept.values() for why in found})
        kept = {
            why: tuple(sorted({name for found in self.kept.values() for name in found.get(why, ())})) for why in reasons
        }
        stay = [
            f"{counted(len(names), 'segment')} {'stays as it is' if len(names) == 1 else 'stay as they are'}: {why}"
            for why, names in kept.items()
        ]
        return MergeReport(tuple(self.merged), kept, read, written, f"{'; '.join([said, *stay])}.", dry_run)
