"""A backup directory on disk: objects that backups share, and a manifest per backup. See docs/adr/0052-backups.md.

DIR/hybrid-backup.json        marks the directory
DIR/objects/ab/<sha256>       the bytes of a file, never changed
DIR/backups/<id>.json         a manifest; the backup exists when this file does
DIR/parts/                    files that are being written
DIR/writing.lock, reading.lock

A part is synced before it is renamed to its place. So a complete name means complete bytes, after a power failure too.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hybrid.errors import ConflictError, DataError, HybridError, NotFoundError, UsageError
from hybrid.lake.failpoints import step
from hybrid.operations.backups.backup_manifest import BackupManifest
from hybrid.runtime import durable
from hybrid.runtime.disk import full_disk
from hybrid.runtime.file_lock import try_lock

MARKER = "hybrid-backup.json"
_MARK = '{"hybrid_backup": 1}\n'
_OBJECTS, _BACKUPS, _PARTS = "objects", "backups", "parts"
_WRITING, _READING = "writing.lock", "reading.lock"
_DIGEST = re.compile(r"[0-9a-f]{64}")
_BACKUP_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}")
_CHUNK = 1 << 20


@dataclass(frozen=True)
class StoredObject:
    """An object: its digest and size. `is_new`: it was not in the store before."""

    sha256: str
    size: int
    is_new: bool


class BackupStore:
    """The store in a folder that exists and has the mark."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def open(cls, folder: Path) -> BackupStore:
        """The store in an existing backup directory; NotFoundError for any other folder."""
        if not (folder / MARKER).is_file():
            raise NotFoundError(f"{folder} is no backup directory: it has no {MARKER}.", hint="hybrid backup create")
        return cls(folder)

    @classmethod
    def prepare(cls, folder: Path) -> BackupStore:
        """The store in a folder, which is created where it is missing. UsageError for a folder with other files."""
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder} is a file: name a folder for backups.")
        if not folder.parent.is_dir():
            raise NotFoundError(f"{folder}: folder '{folder.parent}' does not exist.")
        durable.make_private(folder)
        if not (folder / MARKER).exists():
            own = {_OBJECTS, _BACKUPS, _PARTS, _WRITING, _READING}  # of a preparation that was killed
            names = {path.name for path in folder.iterdir() if not path.name.startswith(f"{MARKER}.")}
            if foreign := sorted(names - own):
                raise UsageError(
                    f"{folder} holds other files ({foreign[0]}). Nothing was written.", hint="Name an empty folder."
                )
            cls._make_places(folder)
            durable.write_text(folder / MARKER, _MARK)
        cls._make_places(folder)  # tools that copy a directory may leave out empty folders
        return cls(folder)

    @staticmethod
    def _make_places(folder: Path) -> None:
        for name in (_OBJECTS, _BACKUPS, _PARTS):
            durable.make_private(folder / name)
        for name in (_WRITING, _READING):
            (folder / name).touch(mode=0o600)

    # Locks

    @contextmanager
    def writing(self, timeout_s: float) -> Iterator[None]:
        """Hold the lock of writers. ConflictError when another has held it for `timeout_s`."""
        with (self.folder / _WRITING).open("a") as file:
            if not try_lock(file, timeout_s):
                raise ConflictError(
                    f"Another process writes to the backup directory {self.folder}. Nothing was changed.",
                    hint="Run it again when the other is done.",
                )
            yield

    @contextmanager
    def reading(self, *, alone: bool = False) -> Iterator[None]:
        """Hold the lock of readers, which a delete takes alone. Nothing is locked on a medium that is not written."""
        try:
            descriptor = os.open(self.folder / _READING, os.O_RDONLY | os.O_CREAT, 0o600)
        except OSError:
            if alone:
                raise
            yield
            return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def reading_alone_now(self) -> Iterator[bool]:
        """Hold the lock of readers alone. False when somebody reads just now: it does not wait."""
        with (self.folder / _READING).open("a") as file:
            yield try_lock(file)

    # Objects

    def object_path(self, sha256: str) -> Path:
        """The place of an object. DataError when the digest is none, which must never become a path."""
        if not _DIGEST.fullmatch(sha256):
            raise DataError(f"{self.folder}: {sha256[:80]!r} is no SHA-256.")
        return self.folder / _OBJECTS / sha256[:2] / sha256

    def has(self, sha256: str, size: int) -> bool:
        """Whether the object is there with this size."""
        try:
            return self.object_path(sha256).stat().st_size == size
        except FileNotFoundError:
            return False

    def put_file(self, source: Path) -> StoredObject:
        """Store the bytes of a file. FileNotFoundError when it is gone."""
        with source.open("rb") as file:
            return self._put(file)

    def put_bytes(self, data: bytes) -> StoredObject:
        """Store some bytes."""
        sha256 = hashlib.sha256(data).hexdigest()
        if self.has(sha256, len(data)):
            return StoredObject(sha256, len(data), is_new=False)
        part = self.new_part()
        _write_private(part, data)
        return self._name(part, sha256, len(data))

    def _put(self, file: BinaryIO) -> StoredObject:
        part = self.new_part()
        return self._name(part, *_copied(file, part))

    def new_part(self) -> Path:
        """A new name for a file that is being written."""
        return self.folder / _PARTS / uuid.uuid4().hex

    def _name(self, part: Path, sha256: str, size: int) -> StoredObject:
        """Give a part its name, unless the object is there already."""
        if self.has(sha256, size):
            part.unlink()
            return StoredObject(sha256, size, is_new=False)
        durable.sync(part)
        step("backup.part")
        path = self.object_path(sha256)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        part.rename(path)
        step("backup.object")
        return StoredObject(sha256, size, is_new=True)

    def copy_out(self, sha256: str, target: Path) -> int:
        """Copy an object to a new file and return its size. DataError when its bytes do not have its digest."""
        try:
            with self.object_path(sha256).open("rb") as file:
                digest, size = _copied(file, target)
        except FileNotFoundError as error:
            raise DataError(f"{self.object_path(sha256)} is missing.", hint=self._verify_hint()) from error
        except IsADirectoryError as error:
            raise DataError(f"{self.object_path(sha256)} is damaged.", hint=self._verify_hint()) from error
        if digest != sha256:
            raise DataError(f"{self.object_path(sha256)} is damaged.", hint=self._verify_hint())
        return size

    def digest_of(self, sha256: str) -> str | None:
        """The digest of an object's bytes as they are; None when it is missing, "" when it cannot be read."""
        try:
            with self.object_path(sha256).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        except FileNotFoundError:
            return None
        except OSError:  # a bad sector, no right to read, a folder in its place
            return ""

    def _verify_hint(self) -> str:
        return f"hybrid backup verify {self.folder}"

    def sync_objects(self, digests: set[str]) -> None:
        """Sync the names of objects. A manifest that names them may be written afterwards."""
        durable.sync_folders((self.object_path(sha256) for sha256 in digests), self.folder)

    def sweep_parts(self) -> None:
        """Remove what killed writers have left half written. Call it under the lock of writers."""
        for path in (self.folder / _PARTS).glob("*"):
            path.unlink()

    def surplus_objects(self, needed: set[str]) -> list[Path]:
        """Everything below `objects` and `parts` that no manifest needs."""
        paths = (path for name in (_OBJECTS, _PARTS) for path in sorted((self.folder / name).rglob("*")))
        return [path for path in paths if not path.is_dir() and not self._is_object_of(path, needed)]

    def _is_object_of(self, path: Path, needed: set[str]) -> bool:
        return path.name in needed and path == self.object_path(path.name)

    # Manifests

    def ids(self) -> list[str]:
        """The ids of the backups, oldest first: they begin with the time. Damaged ones count too.

        Files whose names cannot be those of a manifest are left out: see `other_files`.
        """
        names = (path.stem for path in (self.folder / _BACKUPS).glob("*.json"))
        return sorted(name for name in names if _BACKUP_ID.fullmatch(name))

    def manifest_path(self, backup_id: str) -> Path:
        """The place of a manifest. NotFoundError when the id cannot be one; DataError when a file has such a name."""
        if not _BACKUP_ID.fullmatch(backup_id):
            if f"{backup_id}.json" in {path.name for path in (self.folder / _BACKUPS).glob("*.json")}:
                raise DataError(f"{self.folder / _BACKUPS}: {backup_id[:100]}.json is not the name of a manifest.")
            raise NotFoundError.named("Backup", backup_id[:100], self.ids())
        return self.folder / _BACKUPS / f"{backup_id}.json"

    def read(self, backup_id: str) -> BackupManifest:
        """A manifest. NotFoundError, with a suggestion, when there is none; DataError when it is damaged."""
        path = self.manifest_path(backup_id)
        try:
            text = path.read_bytes().decode("utf-8")
        except FileNotFoundError:
            raise NotFoundError.named("Backup", backup_id, self.ids()) from None
        except (UnicodeDecodeError, OSError) as error:  # bytes that are no text, or that the disk does not read
            raise DataError(f"{path} is damaged: {error}.") from error
        manifest = BackupManifest.from_text(text, str(path))
        if manifest.id != backup_id:
            raise DataError(f"{path} is the manifest of backup '{manifest.id}'.")
        return manifest

    def newest(self) -> BackupManifest:
        """The newest backup. NotFoundError without any; DataError when its manifest is damaged."""
        ids = self.ids()
        if not ids:
            raise NotFoundError(f"{self.folder} holds no backup.", hint=f"hybrid backup create {self.folder}")
        return self.read(ids[-1])

    def newest_whole(self) -> BackupManifest:
        """The backup that is restored when none is named: the newest of all tables, or without one the newest.

        ConflictError when backups of several homes are there; DataError when a newer manifest is damaged.
        """
        manifests, errors = self.readable()
        if not manifests:
            return self.newest()
        homes = _homes(manifests)
        if len(homes) > 1:
            raise ConflictError(
                f"{self.folder} holds backups of {len(homes)} homes ({', '.join(homes)}): which one is to be restored?",
                hint=f"Name its ID: hybrid backup list {self.folder}",
            )
        chosen = next((manifest for manifest in reversed(manifests) if manifest.whole), manifests[-1])
        newer = max(errors, default="")
        if newer > chosen.id:
            raise DataError(f"{errors[newer]} It may be newer than '{chosen.id}'.", hint=f"Name an ID, as {chosen.id}.")
        return chosen

    def newest_first(self, ending: str = "") -> Iterator[BackupManifest]:
        """The readable manifests whose ids end so, newest first. Each is read when it is asked for."""
        for backup_id in reversed(self.ids()):
            if backup_id.endswith(ending):
                with suppress(DataError):
                    yield self.read(backup_id)

    def readable(self) -> tuple[list[BackupManifest], dict[str, HybridError]]:
        """All readable manifests, oldest first, and the errors of the others by id."""
        manifests, errors = list[BackupManifest](), dict[str, HybridError]()
        for backup_id in self.ids():
            try:
                manifests.append(self.read(backup_id))
            except DataError as error:
                errors[backup_id] = error
        return manifests, errors

    def publish(self, manifest: BackupManifest) -> None:
        """Write a manifest. From its rename on the backup exists."""
        part = self.new_part()
        _write_private(part, manifest.to_text().encode())
        durable.sync(part)
        step("backup.manifest")
        durable.rename(part, self.manifest_path(manifest.id))
        step("backup.published")

    def withdraw(self, backup_id: str) -> None:
        """Remove a manifest. From then on the backup does not exist."""
        path = self.manifest_path(backup_id)
        path.unlink()
        durable.sync(path.parent)
        step("backup.withdrawn")

    def other_files(self) -> list[Path]:
        """Files of the directory that belong to no part of it."""
        own = {MARKER, _WRITING, _READING, _OBJECTS, _BACKUPS, _PARTS}
        top = [path for path in sorted(self.folder.iterdir()) if path.name not in own]
        manifests = {f"{backup_id}.json" for backup_id in self.ids()}
        return top + [path for path in sorted((self.folder / _BACKUPS).glob("*")) if path.name not in manifests]

    def is_marked(self) -> bool:
        """Whether the mark is as it was written."""
        try:
            return (self.folder / MARKER).read_bytes() == _MARK.encode()
        except OSError:
            return False


def _homes(manifests: Sequence[BackupManifest]) -> list[str]:
    """The homes that have backups, in words. Those in one folder are the same if their ids or their machines are.

    A restored home has another id, and a new container has another name. A backup without both counts for any home in
    its folder.
    """
    homes: list[list[BackupManifest]] = []
    for manifest in sorted(manifests, key=lambda manifest: not manifest.home_id):
        same = [others for others in homes if any(map(manifest.is_of_same_home, others))]
        same = same if manifest.home_id else same[:1]
        merged = [manifest, *(other for others in same for other in others)]
        homes = [merged, *(others for others in homes if others not in same)]
    return sorted({_home_words(max(of_home, key=lambda manifest: manifest.id)) for of_home in homes})


def _home_words(manifest: BackupManifest) -> str:
    return f"{manifest.host}:{manifest.home}" if manifest.host else manifest.home


def _copied(file: BinaryIO, target: Path) -> tuple[str, int]:
    """Copy an open file to a new one. Returns the digest and size of its bytes."""
    digest, size = hashlib.sha256(), 0
    with _naming_disk(target), _open_private(target) as copy:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            copy.write(chunk)
            size += len(chunk)
    return digest.hexdigest(), size


def _open_private(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _write_private(path: Path, data: bytes) -> None:
    with _naming_disk(path), _open_private(path) as file:
        file.write(data)


@contextmanager
def _naming_disk(path: Path) -> Iterator[None]:
    """Raise the error of a full disk as one that names this disk: it may be another than the home's."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise full_disk(path.parent) from error
        raise
