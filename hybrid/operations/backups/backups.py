"""The backups of a home: make, list, verify, restore and delete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.errors import HybridError
from hybrid.operations.backups.backup_catalog import ALL_TABLES
from hybrid.operations.backups.backup_create import BackupReport, check_directory, create_backup
from hybrid.operations.backups.backup_delete import DeletionReport, delete_backup, delete_surplus
from hybrid.operations.backups.backup_manifest import BackupManifest
from hybrid.operations.backups.backup_restore import RestoreReport, restore_backup
from hybrid.operations.backups.backup_store import BackupStore
from hybrid.operations.backups.backup_surplus import surplus_words
from hybrid.operations.backups.backup_verify import VerifyReport, verify_backups
from hybrid.progress import Progress
from hybrid.runtime.sentence_repr import shown_as

if TYPE_CHECKING:
    from hybrid.home.home import Home

BACKUP = "backup"


@shown_as("{0.id}: {0.state}, {0.files} files")
@dataclass(frozen=True)
class BackupSummary:
    """A backup in a list. `state` is `WHOLE`, `PARTIAL` (it holds named tables only) or `DAMAGED` (its manifest is)."""

    id: str
    state: str
    created_at: str | None
    tables: tuple[str, ...]
    files: int | None
    bytes: int | None
    home: str | None
    product: str | None
    result: str

    def to_json(self) -> dict[str, object]:
        """The summary as a JSON value."""
        return {**vars(self), "tables": list(self.tables)}


def list_backups(directory: Path) -> list[BackupSummary]:
    """The backups in a directory, newest first. NotFoundError when it is no backup directory."""
    store = BackupStore.open(directory)
    manifests, errors = store.readable()
    found = [_summary(manifest) for manifest in manifests]
    found += [_damaged(backup_id, error) for backup_id, error in errors.items()]
    return sorted(found, key=lambda summary: summary.id, reverse=True)


def notes_on(directory: Path) -> list[str]:
    """Sentences on what a directory holds beside its backups."""
    store = BackupStore(directory)
    ids = set(store.ids())
    odd = [
        f"{path} is no backup: a manifest does not have such a name. It is left alone."
        for path in sorted((store.folder / "backups").glob("*.json"))
        if path.stem not in ids
    ]
    surplus = surplus_words(store)
    return odd if surplus is None else [*odd, surplus]


def _summary(manifest: BackupManifest) -> BackupSummary:
    return BackupSummary(
        id=manifest.id,
        state="WHOLE" if manifest.whole else "PARTIAL",
        created_at=manifest.created_at,
        tables=tuple(table.name for table in manifest.tables),
        files=len(manifest.files),
        bytes=manifest.bytes,
        home=manifest.home,
        product=manifest.product,
        result="; ".join(table.revision for table in manifest.tables),
    )


def _damaged(backup_id: str, error: HybridError) -> BackupSummary:
    return BackupSummary(backup_id, "DAMAGED", None, (), None, None, None, None, str(error))


@shown_as("{0._home.folder}")
class Backups:
    """The backups of a home. Directories are folders on this machine; see docs/reference/backup.md."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @property
    def _progress(self) -> Progress:
        return self._home.progress

    def create(self, directory: str | Path, tables: Sequence[str] | None = None) -> BackupReport:
        """Backs up all tables, or the named ones, while they are used; only new files are copied."""

        def work() -> BackupReport:
            return create_backup(self._home, Path(directory), tables)

        self._home.require_folder()
        return self._home.run_recorded(ALL_TABLES, BACKUP, work)

    def list(self, directory: str | Path) -> list[BackupSummary]:
        """The backups in a directory, newest first."""
        return list_backups(check_directory(self._home, Path(directory)))

    def verify(self, directory: str | Path, backup: str | None = None) -> VerifyReport:
        """Reads every byte of one backup or of all, and compares it with its checksum."""
        return verify_backups(check_directory(self._home, Path(directory)), backup, self._progress)

    def restore(
        self, directory: str | Path, backup: str | None = None, tables: Sequence[str] | None = None
    ) -> RestoreReport:
        """Restores a backup (None: the newest of all tables) as this home, which must be empty or not exist yet."""
        return restore_backup(self._home, Path(directory), backup, tables)

    def delete(self, directory: str | Path, backup: str) -> DeletionReport:
        """Deletes a backup, and the files that no other backup needs."""
        folder = check_directory(self._home, Path(directory))
        return delete_backup(folder, backup, self._progress, self._home.settings.lock_timeout_s)

    def delete_surplus(self, directory: str | Path) -> DeletionReport:
        """Deletes only files that no backup needs: what a killed backup left may hold rows that were erased."""
        folder = check_directory(self._home, Path(directory))
        return delete_surplus(folder, self._progress, self._home.settings.lock_timeout_s)
