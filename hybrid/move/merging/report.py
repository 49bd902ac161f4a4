"""The result of a run of merges, or why it did nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hybrid.progress import counted
from hybrid.runtime.sentence_repr import shown_as_sentence


def left_out(read: int, written: int, *, rolled_up: bool = False) -> str:
    """Words for the rows that were rolled up or left out; empty when all remain."""
    if read == written:
        return ""
    return (
        f", {counted(read, 'row')} rolled up to {written}"
        if rolled_up
        else f", {counted(read - written, 'row')} left out"
    )


@dataclass(frozen=True)
class Merged:
    """One commit of a `task`: `segments` of the bucket from `start` (epoch ms) became `into`.

    No `version`: a dry run.
    """

    task: str
    start: int
    segments: tuple[str, ...]
    into: tuple[str, ...]
    rows_read: int
    rows_written: int
    act: str | None = None
    version: int | None = None


@shown_as_sentence
@dataclass(frozen=True)
class MergeReport:
    """Every commit in order, and the excluded segments by reason; `rows_read` and `rows_written` are totals."""

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

    @property
    def did_something(self) -> bool:
        """Whether something was committed."""
        return self.committed


@dataclass
class MergeFindings:
    """The results of a run so far; `kept` names the excluded segments by level (or similar) and reason."""

    merged: list[Merged] = field(default_factory=list)
    kept: dict[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)

    def report(self, said: str, *, dry_run: bool) -> MergeReport:
        """The report of a finished run; `said` is the first part of its sentence."""
        read, written = (sum(getattr(merged, key) for merged in self.merged) for key in ("rows_read", "rows_written"))
        reasons = sorted({why for segments_by_reason in self.kept.values() for why in segments_by_reason})
        excluded = {
            why: tuple(
                sorted({name for segments_by_reason in self.kept.values() for name in segments_by_reason.get(why, ())})
            )
            for why in reasons
        }
        stay = [
            f"{counted(len(names), 'segment')} {'stays as it is' if len(names) == 1 else 'stay as they are'}: {why}"
            for why, names in excluded.items()
        ]
        return MergeReport(tuple(self.merged), excluded, read, written, f"{'; '.join([said, *stay])}.", dry_run)
