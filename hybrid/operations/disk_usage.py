"""What a home takes on disk beside the data files of its tables, and what is left of the disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hybrid.operations.tables.drop import all_copies
from hybrid.runtime.disk import folder_bytes, free_bytes

if TYPE_CHECKING:
    from hybrid.home.home import Home


@dataclass(frozen=True)
class DiskUsage:
    """Bytes on disk: logs, the local broker's messages, copies of dropped tables. `free` are those left of the disk."""

    logs: int
    kafka: int
    dropped_copies: int
    free: int


def disk_usage(home: Home) -> DiskUsage:
    """Counts the files of a home, without the data of its tables."""
    from hybrid.jvm.broker import LocalBroker

    return DiskUsage(
        logs=folder_bytes(home.settings.logs),
        kafka=folder_bytes(LocalBroker(home.folder).folder),
        dropped_copies=sum(folder_bytes(path) for path in all_copies(home)),
        free=free_bytes(home.folder),
    )
