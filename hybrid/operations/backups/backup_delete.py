"""Deletes a backup: its manifest, and then the objects that no other backup needs."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hybrid.errors import ConflictError
from hybrid.lake.failpoints import step
from hybrid.operations.backups.backup_store import BackupStore
from hybrid.progress import Progress, counted
from hybrid.runtime import durable
from hybrid.runtime.sentence_repr import shown_as_sentence


@shown_as_sentence
@dataclass(frozen=True)
class DeletionReport:
    """What was deleted: the backup, and the files with their bytes that only it needed, or that nothing needed."""

    id: str
    directory: str
    files: int
    bytes: int
    sentence: str

    @property
    def did_something(self) -> bool:
        """The manifest is gone in any case."""
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
        manifests, errors = store.readable()
        if errors:
            raise ConflictError(
                f"Backup '{backup_id}' is deleted, but its files stay: the manifest of '{min(errors)}' is damaged, and "
                "nobody knows which files that one needs.",
                hint=f"hybrid backup delete {directory} {min(errors)}",
            )
        needed = {file.sha256 for manifest in manifests for file in manifest.files}
        surplus, size = store.surplus_objects(needed), 0
        for number, surplus_path in enumerate(surplus, 1):
            with suppress(FileNotFoundError):
                size += surplus_path.stat().st_size
                surplus_path.unlink()
            step("backup.removed")
            progress.step("removing files", number, len(surplus))
        durable.sync_folders(surplus, store.folder)
    sentence = f"Deleted backup {backup_id}: {counted(len(surplus), 'file')} ({counted(size, 'byte')}) went with it."
    return DeletionReport(backup_id, str(store.folder), len(surplus), size, sentence)
