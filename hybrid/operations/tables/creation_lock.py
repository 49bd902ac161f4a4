"""The lock of a table's name, held while a table is created, changed, or withdrawn from a warehouse's store."""

from __future__ import annotations

from contextlib import AbstractContextManager

from hybrid.lake.layout import TableLayout
from hybrid.lake.lock import half_lock
from hybrid.progress import Progress
from hybrid.runtime import durable


def creation_lock(layout: TableLayout, timeout_s: float, progress: Progress) -> AbstractContextManager[object]:
    """A lock for creation of a table by one process at a time: leftovers are removed only of a creation that died."""
    durable.make_private(layout.root.parent.parent)  # the home too: otherwise it would be readable by everybody
    lock = layout.root.with_name(f".{layout.root.name}.creating.lock")
    return half_lock(lock, jvm_pid=None, timeout_s=timeout_s, waiting=progress.say)
