"""Verifies a backup directory: every byte against its checksum, and that no file is missing or surplus."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from hybrid.errors import DataError
from hybrid.operations.backups.backup_manifest import BackupManifest
from hybrid.operations.backups.backup_store import MARKER, BackupStore
from hybrid.operations.backups.file_threads import in_threads
from hybrid.progress import Progress, counted
from hybrid.runtime.sentence_repr import shown_as_sentence

_THREADS = 2


class DamageKind(StrEnum):
    """What is wrong with a file of a backup directory. SURPLUS: no backup needs it, so it harms none."""

    DAMAGED = "DAMAGED"
    MISSING = "MISSING"
    SURPLUS = "SURPLUS"


@dataclass(frozen=True)
class BackupDamage:
    """A finding: the file in the backup directory, the path in the home that it is for, and the backups that need it.

    `file` None: the finding is about the directory itself or a manifest.
    """

    kind: DamageKind
    path: str
    file: str | None
    backups: tuple[str, ...]


@shown_as_sentence
@dataclass(frozen=True)
class VerifyReport:
    """The result of a verification. `sound`: every verified backup can be restored."""

    directory: str
    backups: tuple[str, ...]
    files: int
    bytes: int
    sound: bool
    findings: tuple[BackupDamage, ...]
    sentence: str

    def to_json(self) -> dict[str, object]:
        """The report as a JSON value."""
        findings = [{**vars(one), "kind": one.kind.value, "backups": list(one.backups)} for one in self.findings]
        return {**vars(self), "backups": list(self.backups), "findings": findings}


def verify_backups(directory: Path, backup_id: str | None, progress: Progress) -> VerifyReport:
    """Verify one backup of a directory, or all with everything else in it. NotFoundError when there is none."""
    store = BackupStore.open(directory)
    with store.reading():
        if backup_id is not None:
            store.manifest_path(backup_id)  # NotFoundError for what cannot be an id
            if backup_id not in store.ids():
                store.read(backup_id)
        elif not store.ids():
            store.newest()
        return _verified(store, backup_id, progress)


def _verified(store: BackupStore, backup_id: str | None, progress: Progress) -> VerifyReport:
    findings, manifests = list[BackupDamage](), list[BackupManifest]()
    ids = store.ids() if backup_id is None else [backup_id]
    for one in ids:
        try:
            manifests.append(store.read(one))
        except DataError:
            path = store.manifest_path(one).relative_to(store.folder)
            findings.append(BackupDamage(DamageKind.DAMAGED, str(path), None, (one,)))
    names, sizes, needed_by = dict[str, str](), dict[str, int](), dict[str, list[str]]()
    for manifest in manifests:
        for file in manifest.files:
            names[file.sha256], sizes[file.sha256] = file.path, file.size
            users = needed_by.setdefault(file.sha256, [])
            if not users or users[-1] != manifest.id:
                users.append(manifest.id)
    digests = in_threads(store.digest_of, list(sizes), progress, "verifying files", _THREADS)
    for sha256, digest in zip(sizes, digests, strict=True):
        if digest != sha256:
            kind = DamageKind.MISSING if digest is None else DamageKind.DAMAGED
            place = str(store.object_path(sha256).relative_to(store.folder))
            findings.append(BackupDamage(kind, place, names[sha256], tuple(needed_by[sha256])))
    if backup_id is None:
        findings += _directory_findings(store, set(sizes), is_complete=len(manifests) == len(ids))
    return _report(store, ids, sizes, findings)


def _directory_findings(store: BackupStore, needed: set[str], *, is_complete: bool) -> list[BackupDamage]:
    findings = list[BackupDamage]()
    if not store.is_marked():
        findings.append(BackupDamage(DamageKind.DAMAGED, MARKER, None, ()))
    # What a damaged manifest needs is not known: then no object can be called surplus.
    surplus = [*(store.surplus_objects(needed) if is_complete else []), *store.other_files()]
    return findings + [
        BackupDamage(DamageKind.SURPLUS, str(path.relative_to(store.folder)), None, ()) for path in surplus
    ]


def _report(store: BackupStore, ids: list[str], sizes: dict[str, int], findings: list[BackupDamage]) -> VerifyReport:
    bad = [one for one in findings if one.kind is not DamageKind.SURPLUS]
    surplus = len(findings) - len(bad)
    size = sum(sizes.values())
    read = f"Verified {counted(len(ids), 'backup')} in {store.folder}: {counted(len(sizes), 'file')}"
    result = f"{counted(len(bad), 'file')} damaged or missing" if bad else "all are as they were written"
    extra = f"; {counted(surplus, 'surplus file')} that no backup needs" if surplus else ""
    sentence = f"{read} ({counted(size, 'byte')}), {result}{extra}."
    return VerifyReport(str(store.folder), tuple(ids), len(sizes), size, not bad, tuple(findings), sentence)
