"""The result of a run of vacuum, or why it did nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hybrid.config.table_config import Half
from hybrid.progress import counted
from hybrid.runtime.sentence_repr import shown_as_sentence


@dataclass(frozen=True)
class Removed:
    """What was removed from a half: data files and commits of its log, with their bytes.

    `kept` says why the rest stays.
    """

    half: Half
    files: int = 0
    file_bytes: int = 0
    commits: int = 0
    log_bytes: int = 0
    kept: tuple[str, ...] = ()

    @property
    def anything(self) -> bool:
        """Whether something was removed."""
        return bool(self.files or self.commits)

    def words(self) -> str:
        """Words for the sentence."""
        parts = []
        if self.files:
            parts.append(f"{counted(self.files, 'data file')} ({counted(self.file_bytes, 'byte')})")
        if self.commits:
            parts.append(f"{counted(self.commits, 'commit')} of the log ({counted(self.log_bytes, 'byte')})")
        return f"{' and '.join(parts)} of {self.half}"


@shown_as_sentence
@dataclass(frozen=True)
class VacuumReport:
    """What was removed by half: data `files` and their `bytes`, `commits` of the log and `log_bytes`.

    `kept` says by half why no more was removed.
    """

    files: Mapping[str, int]
    bytes: Mapping[str, int]
    commits: Mapping[str, int]
    log_bytes: Mapping[str, int]
    kept: Mapping[str, str]
    sentence: str
    dry_run: bool = False

    @property
    def removed(self) -> bool:
        """Whether something was removed."""
        return not self.dry_run and any((*self.files.values(), *self.commits.values()))

    @property
    def did_something(self) -> bool:
        """Whether something was removed."""
        return self.removed


def report_of(table: str, halves: list[Removed], *, dry_run: bool) -> VacuumReport:
    """The report of a run over some halves of a table."""

    def by_half(name: str) -> dict[str, int]:
        return {removed.half.value: getattr(removed, name) for removed in halves}

    reasons_by_half = {removed.half.value: "; ".join(removed.kept) for removed in halves if removed.kept}
    gone = [removed for removed in halves if removed.anything]
    reasons = "; ".join(f"of {half} {why}" for half, why in reasons_by_half.items())
    if gone:
        verb = "Would remove" if dry_run else "Removed"
        sentence = f"{verb} {', and '.join(removed.words() for removed in gone)} from '{table}'"
        sentence += f"; {reasons}." if reasons else "."
    else:
        sentence = f"Nothing to remove from '{table}': {reasons}."
    return VacuumReport(
        by_half("files"),
        by_half("file_bytes"),
        by_half("commits"),
        by_half("log_bytes"),
        reasons_by_half,
        sentence,
        dry_run,
    )
