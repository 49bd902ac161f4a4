"""Restores a backup into a new home. See docs/adr/0052-backups.md.

copy into a folder beside the new home, checking every digest      the home does not exist
adapt the catalog, open each half at its version, sync             the home does not exist
rename the folder                                                  the home is there, whole
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, DataError, HybridError, NotFoundError, UsageError
from hybrid.kafka.clients import CHECK_TIMEOUT_MS
from hybrid.kafka.streams import SilentBrokers
from hybrid.lake.failpoints import step
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import open_half
from hybrid.operations.backups.backup_catalog import CATALOG, adapt_catalog
from hybrid.operations.backups.backup_create import check_directory
from hybrid.operations.backups.backup_manifest import BackupFile, BackupManifest
from hybrid.operations.backups.backup_store import BackupStore
from hybrid.operations.backups.file_threads import in_threads
from hybrid.operations.backups.stream_gaps import stream_warnings
from hybrid.progress import counted
from hybrid.runtime import durable
from hybrid.runtime.file_lock import file_lock
from hybrid.runtime.sentence_repr import shown_as_sentence

if TYPE_CHECKING:
    from hybrid.home.home import Home

_WAREHOUSE, _SCHEMAS, _LOGS = "warehouse", ".schemas", "logs"


@shown_as_sentence
@dataclass(frozen=True)
class RestoreReport:
    """A restored home: its tables with the revisions that they were restored at.

    `warnings` say where ingestion will not continue where it stopped; `left_out` names what was not in the backup.
    """

    id: str
    home: str
    tables: dict[str, str]
    files: int
    bytes: int
    warnings: tuple[str, ...]
    left_out: tuple[str, ...]
    sentence: str

    def to_json(self) -> dict[str, object]:
        """The report as a JSON value."""
        return {**vars(self), "warnings": list(self.warnings), "left_out": list(self.left_out)}


def restore_backup(
    home: Home, directory: Path, backup_id: str | None = None, tables: Sequence[str] | None = None
) -> RestoreReport:
    """Restore a backup, or some of its tables, as the new home that `home` names. None: see `newest_whole`.

    ConflictError when there is something at that place, or when backups of several homes make the choice unclear;
    UsageError for a mount point, or a home that the directory contains or that contains it; DataError when a file is
    damaged. No home is made then.
    """
    target = home.folder
    directory = check_directory(home, directory)  # a home in a backup directory would be surplus there
    _require_empty(target)
    _require_renamable(target)
    store = BackupStore.open(directory)
    durable.make_folder(target.parent)
    with store.reading():
        manifest = store.newest_whole() if backup_id is None else store.read(backup_id)
        names = _chosen(manifest, tables)
        part = target.with_name(f".{target.name}.restoring")
        with file_lock(target.parent):  # two restores to one place take turns
            _return_logs(part, target)
            shutil.rmtree(part, ignore_errors=True)  # of a restore that was killed
            files = [file for file in manifest.files if _is_chosen(file.path, names, whole=tables is None)]
            home.progress.say(f"Restoring {counted(len(files), 'file')} of backup {manifest.id}.")
            try:
                _fill(home, store, part, files)
                _complete(part, manifest, names, whole=manifest.whole and tables is None)
                step("restore.copied")
                _require_empty(target)
                if (target / _LOGS).is_dir():
                    (target / _LOGS).rename(part / _LOGS)
                durable.rename(part, target)
            except BaseException:
                _return_logs(part, target)
                shutil.rmtree(part, ignore_errors=True)
                raise
        step("restore.renamed")
    return _report(home, manifest, names, files)


def _require_empty(target: Path) -> None:
    """ConflictError unless there is nothing at a place but logs, which a command may have written there."""
    is_folder = target.is_dir() and not target.is_symlink()
    if any(path.name != _LOGS for path in target.iterdir()) if is_folder else os.path.lexists(target):
        raise ConflictError(
            f"{target} is not empty: a backup is restored into a new home. Nothing was changed.",
            hint="Name another: hybrid backup restore ... --home DIR",
        )


def _require_renamable(target: Path) -> None:
    """UsageError for a mount point: a folder cannot be renamed to it, which would show only after all is copied."""
    if target.is_dir() and (os.path.ismount(target) or target.stat().st_dev != target.parent.stat().st_dev):
        raise UsageError(
            f"{target} is a mount point, and no folder can be renamed to one, as a restore does at its end. Nothing "
            "was changed.",
            hint=f"Name a folder in it: hybrid backup restore ... --home {target / 'home'}",
        )


def _return_logs(part: Path, target: Path) -> None:
    """Move logs back that a failed or killed restore has taken from the new home's place."""
    if (part / _LOGS).is_dir() and not (target / _LOGS).exists():
        with suppress(OSError):  # what else goes wrong is said by the error that led here
            target.mkdir(mode=0o700, exist_ok=True)
            (part / _LOGS).rename(target / _LOGS)


def _chosen(manifest: BackupManifest, tables: Sequence[str] | None) -> list[str]:
    known = [table.name for table in manifest.tables]
    for name in tables or ():
        if name not in known:
            raise NotFoundError.named("Table", name, known)
    return known if tables is None else list(dict.fromkeys(tables))


def _is_chosen(path: str, names: Sequence[str], *, whole: bool) -> bool:
    parts = path.split("/")
    if whole or parts[0] != _WAREHOUSE:
        return True
    return parts[1] in names or (parts[1] == _SCHEMAS and parts[-1].removesuffix(".json") in names)


def _fill(home: Home, store: BackupStore, part: Path, files: Sequence[BackupFile]) -> None:
    part.mkdir(mode=0o700)
    targets = [part / _safe(file.path) for file in files]
    for folder in sorted({parent for target in targets for parent in target.parents if part in parent.parents}):
        folder.mkdir(mode=0o700, exist_ok=True)

    def copy(file_target: tuple[BackupFile, Path]) -> None:
        file, target = file_target
        store.copy_out(file.sha256, target)
        os.utime(target, ns=(file.modified_ns, file.modified_ns))
        step("restore.file")

    in_threads(copy, list(zip(files, targets, strict=True)), home.progress, "restoring files")


def _safe(path: str) -> PurePosixPath:
    """A path of a manifest. DataError when it leads out of the home: a manifest may come from elsewhere."""
    relative = PurePosixPath(path)
    if relative.is_absolute() or not relative.parts or ".." in relative.parts:
        raise DataError(f"The backup holds a file {path[:200]!r}, which would lie outside of the home.")
    return relative


def _complete(part: Path, manifest: BackupManifest, names: Sequence[str], *, whole: bool) -> None:
    """Adapt the catalog, and make sure that every half can be read at its version."""
    pinned_at = {name: table.pinned_at for name in names if (table := manifest.table(name)) is not None}
    if (part / CATALOG).exists():
        adapt_catalog(part / CATALOG, pinned_at, whole=whole)
    for name in names:
        table = manifest.table(name)
        assert table is not None
        for half, version in table.versions.items():
            snapshot = open_half(TableLayout(part / _WAREHOUSE / name).half(Half(half)))
            missing = next((file.path for file in snapshot.files if not os.path.exists(file.path)), None)
            if snapshot.version != version or missing is not None:
                raise DataError(f"Backup '{manifest.id}' does not hold {half} of '{name}' at version {version}.")
            _ = snapshot.state
    durable.sync_tree(part)


def _report(home: Home, manifest: BackupManifest, names: Sequence[str], files: Sequence[BackupFile]) -> RestoreReport:
    home.progress.say("Asking Kafka what it still holds.")
    brokers, warnings = SilentBrokers(CHECK_TIMEOUT_MS), list[str]()
    for name in names:
        try:
            warnings += stream_warnings(home, name, brokers)
        except HybridError as error:
            warnings.append(f"Table '{name}': {error.words}")
    left_out = list(manifest.left_out)
    if not manifest.whole:
        others = "the backup was made of named tables only"
        left_out.insert(0, f"other tables that {manifest.home} may have, for {others} (PARTIAL)")
    size = sum(file.size for file in files)
    sentence = (
        f"Restored {counted(len(names), 'table')} of backup {manifest.id} as the home {home.folder}: "
        f"{counted(len(files), 'file')} ({counted(size, 'byte')})."
    )
    revisions = {table.name: table.revision for table in manifest.tables if table.name in names}
    return RestoreReport(
        manifest.id, str(home.folder), revisions, len(files), size, tuple(warnings), tuple(left_out), sentence
    )
