"""Deletes a backup: its manifest, and then the objects that no other backup needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hybrid.errors import ConflictError
from hybrid.operations.backups.backup_store import BackupStore
from hybrid.operations.backups.backup_surplus import remove_surplus
from hybrid.progress import Progress, counted
from hybrid.runtime.sentence_repr import shown_as_sentence


@shown_as_sentence
@dataclass(frozen=True)
class DeletionReport:
    """What was deleted: the backup, and the files with their bytes that only it needed, or that nothing needed.

    `id` None: only files that nothing needed.
    """

    id: str | None
    directory: str
    files: int
    bytes: int
    sentence: str

    @property
    def did_something(self) -> bool:
        """A deletion is recorded, even one that found nothing."""
        return True


def delete_backup(directory: Path, backup_id: str, progress: Progress, timeout_s: float = 60.0) -> DeletionReport:
    """Delete a backup. A damaged manifest can be deleted; objects stay while another one cannot be read.

    NotFoundError for an unknown id; ConflictError when another process writes to the directory, or objects stay.
    """
    store = BackupStore.open(directory)
    path = store.manifest_path(backup_id)
    with store.writing(timeout_s), store.reading(alone=True):
        if not path.exists():
            store.read(backup_id)  # NotFoundError with a suggestion
        store.withdraw(backup_id)
        try:
            removed, size = remove_surplus(store, progress)
        except ConflictError as error:
            raise ConflictError(f"Backup '{backup_id}' is deleted. {error}", hint=error.hint) from error
    sentence = f"Deleted backup {backup_id}: {counted(removed, 'file')} ({counted(size, 'byte')}) went with it."
    return DeletionReport(backup_id, str(store.folder), removed, size, sentence)


def delete_surplus(directory: Path, progress: Progress, timeout_s: float = 60.0) -> DeletionReport:
    """Delete only the files that no backup needs. They may hold rows that were erased meanwhile.

    ConflictError when another process writes to the directory, or while a manifest cannot be read.
    """
    store = BackupStore.open(directory)
    with store.writing(timeout_s), store.reading(alone=True):
        removed, size = remove_surplus(store, progress)
    sentence = f"Deleted {counted(removed, 'file')} ({counted(size, 'byte')}) that no backup in {store.folder} needs."
    return DeletionReport(None, str(store.folder), removed, size, sentence)
