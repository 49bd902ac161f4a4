"""Removes files of a backup directory that no backup needs: left by a killed backup, or of a table pinned again.

They may hold rows that were erased meanwhile, so they must not outlive the backups that hold these rows.
"""

from __future__ import annotations

from contextlib import suppress

from hybrid.errors import ConflictError
from hybrid.lake.failpoints import step
from hybrid.operations.backups.backup_store import BackupStore
from hybrid.progress import Progress, counted
from hybrid.runtime import durable


def remove_surplus(store: BackupStore, progress: Progress) -> tuple[int, int]:
    """Remove surplus files, and return their number and bytes. Call it under both locks.

    ConflictError while a manifest cannot be read: nobody knows which files that one needs.
    """
    manifests, errors = store.readable()
    if errors:
        raise ConflictError(
            f"Files that no backup needs stay: the manifest of '{min(errors)}' is damaged, and nobody knows what it "
            "needs.",
            hint=f"hybrid backup delete {store.folder} {min(errors)}",
        )
    surplus, size = store.surplus_objects({file.sha256 for manifest in manifests for file in manifest.files}), 0
    for number, path in enumerate(surplus, 1):
        with suppress(FileNotFoundError):
            size += path.stat().st_size
            path.unlink()
        step("backup.removed")
        progress.step("removing files", number, len(surplus))
    durable.sync_folders(surplus, store.folder)
    return len(surplus), size


def remove_surplus_if_free(store: BackupStore, progress: Progress) -> None:
    """Remove surplus files after a backup, under the lock of writers. The backup stands whatever happens here.

    They stay while somebody reads the directory, while a manifest is damaged, or when they cannot be removed.
    """
    try:
        with store.reading_alone_now() as is_alone:
            if not is_alone:
                progress.say("Files that no backup needs stay, because the directory is being read.")
                return
            removed, size = remove_surplus(store, progress)
    except (ConflictError, OSError) as error:
        progress.say(f"Files that no backup needs could not be removed: {error}")
        return
    if removed:
        progress.say(f"Removed {counted(removed, 'file')} ({counted(size, 'byte')}) that no backup needs.")


def surplus_words(store: BackupStore) -> str | None:
    """A sentence on the surplus files of a directory; None without any, or when a damaged manifest hides them."""
    manifests, errors = store.readable()
    if errors:
        return None
    surplus, size = store.surplus_objects({file.sha256 for manifest in manifests for file in manifest.files}), 0
    for path in surplus:
        with suppress(FileNotFoundError):
            size += path.stat().st_size
    if not surplus:
        return None
    return (
        f"{counted(len(surplus), 'file')} ({counted(size, 'byte')}) belong to no backup, and may hold rows that were "
        f"erased. Unless a backup is being made, remove them: hybrid backup delete {store.folder} --surplus"
    )
