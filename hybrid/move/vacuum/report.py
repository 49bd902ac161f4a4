"""What a run of vacuum did, or why it did nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hybrid.config.table_config import Half
from hybrid.progress import counted


@dataclass(frozen=True)
class Removed:
    """What went of a half: data files and commits of its log, with their bytes. `kept` says why the rest stays."""

    half: Half
    files: int = 0
    file_bytes: int = 0
    commits: int = 0
    log_bytes: int = 0
    kept: tuple[str, ...] = ()

    @property
    def anything(self) -> bool:
        """Whether something went."""
        return bool(self.files or self.commits)

    def words(self) -> str:
        """For the sentence."""
        parts = []
        if self.files:
            parts.append(f"{counted(self.files, 'data file')} ({counted(self.file_bytes, 'byte')})")
        if self.commits:
            parts.append(f"{counted(self.commits, 'commit')} of the log ({counted(self.log_bytes, 'byte')})")
        return f"{' and '.join(parts)} of {self.half}"


@dataclass(frozen=True)
class VacuumReport:
    """What went by half: data `files` and their `bytes`, `commits` of the log and `log_bytes`.

    `kept` says by half why nothing more went.
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
        """Whether something went."""
        return not self.dry_run and any((*self.files.values(), *self.commits.values()))


def report_of(table: str, halves: list[Removed], *, dry_run: bool) -> VacuumReport:
    """The report of a run over some halves of a table."""

    def by_half(name: str) -> dict[str, int]:
        return {one.half.value: getattr(one, name) for one in halves}

    kept = {one.half.value: "; ".join(one.kept) for one in halves if one.kept}
    gone = [one for one in halves if one.anything]
    reasons = "; ".join(f"of {half} {why}" for half, why in kept.items())
    if gone:
        verb = "Would remove" if dry_run else "Removed"
        sentence = f"{verb} {', and '.join(one.words() for one in gone)} from '{table}'"
        sentence += f"; {reasons}." if reasons else "."
    else:
        sentence = f"Nothing to remove from '{table}': {reasons}."
    return VacuumReport(
        by_half("files"), by_half("file_bytes"), by_half("commits"), by_half("log_bytes"), kept, sentence, dry_run
    )
