"""The revert window of a half: how long removed data is kept, by the Delta table's own properties."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from hybrid.errors import DataError
from hybrid.lake.log import HalfSnapshot

_MS = {
    "millisecond": 1,
    "second": 1000,
    "minute": 60_000,
    "hour": 3_600_000,
    "day": 86_400_000,
    "week": 7 * 86_400_000,
}
FILES, LOG = "delta.deletedFileRetentionDuration", "delta.logRetentionDuration"


@dataclass(frozen=True)
class RetentionWindow:
    """Retention times in milliseconds: of removed data files, and of log entries, which is never shorter."""

    files_ms: int
    log_ms: int


def retention_window_of(half: HalfSnapshot) -> RetentionWindow:
    """The retention window of a half. DataError for a missing or unreadable property: nothing may be deleted by it."""
    files_ms = _duration_ms(half, FILES)
    return RetentionWindow(files_ms, max(files_ms, _duration_ms(half, LOG)))


def _duration_ms(half: HalfSnapshot, name: str) -> int:
    """A duration property in Delta's format: `interval 720 hours`, `30 days`."""
    text = half.properties.get(name, "")
    words = text.lower().removeprefix("interval").split()
    counts, units = words[::2], [word.removesuffix("s") for word in words[1::2]]
    if not words or len(words) % 2 or not all(map(str.isdecimal, counts)) or not _MS.keys() >= set(units):
        raise DataError(f"{half.path}: property {name} is {text!r}, which is no time that is understood here.")
    return sum(int(count) * _MS[unit] for count, unit in zip(counts, units, strict=True))


@dataclass(frozen=True)
class Unneeded:
    """An unneeded data file in a half's folder, and its bytes."""

    path: Path
    bytes: int


def unneeded_files(half: HalfSnapshot) -> list[Unneeded]:
    """Data files older than the half's window that no version within it needs. Needs no JVM, changes nothing.

    Raises DataError when delta-rs cannot process the table.
    """
    try:
        names = DeltaTable(str(half.path)).vacuum(dry_run=True, full=True)
    except DeltaError as error:
        raise DataError(f"{half.path}: its unneeded files cannot be told: {error}") from error
    files = []
    for name in names:
        path = half.path / name
        with suppress(FileNotFoundError):
            if not path.name.startswith("."):  # Hadoop's checksum is deleted with its file
                files.append(Unneeded(path, path.stat().st_size))
    return files
