"""Makes a backup of a home, or of some of its tables, while it is used. See docs/adr/0052-backups.md.

pin every table, then copy the catalog      nothing is written but the catalog's object
copy files that the store lacks             objects without a manifest: surplus, used by the next backup
a file is gone                              its table is pinned again, and the catalog copied again
sync, write the manifest, rename it         the backup exists
remove what no backup needs                 as above: a kill leaves it to the next create or delete
"""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import astuple, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.catalog.definitions import is_table_name
from hybrid.catalog.ownership import home_id
from hybrid.clock import wall_clock_ms
from hybrid.config.settings import FILE_NAME as SETTINGS
from hybrid.errors import DataError, NotFoundError, RightError, UsageError
from hybrid.home.accounts import ACCESS_FILE
from hybrid.lake.failpoints import step
from hybrid.operations.backups.backup_catalog import CATALOG, copy_catalog
from hybrid.operations.backups.backup_manifest import BackupFile, BackupManifest
from hybrid.operations.backups.backup_source import BackupSource, pin_table, require_definitions
from hybrid.operations.backups.backup_store import BackupStore, StoredObject
from hybrid.operations.backups.backup_surplus import remove_surplus_if_free
from hybrid.operations.backups.file_threads import in_threads
from hybrid.operations.backups.home_settings import portable_settings
from hybrid.progress import counted
from hybrid.runtime.json_values import stamp
from hybrid.runtime.sentence_repr import shown_as_sentence

if TYPE_CHECKING:
    from hybrid.config.input_rules import InputRules
    from hybrid.home.home import Home

_WAREHOUSE, _SCHEMAS = "warehouse", ".schemas"
_ATTEMPTS = 10
_NAMES_MAX = 20
_ALWAYS_LEFT_OUT = (
    "messages in Kafka, and the local broker",
    "data files of older versions: older revisions and reverts need the original home",
    "values of secrets that definitions name by reference (${env:...}, ${file:...})",
    "logs, the query log among them, uploads, certificates of erasures, and files that jobs, connectors and flows read",
)


@shown_as_sentence
@dataclass(frozen=True)
class BackupReport:
    """A backup that was made: its tables with their revisions, and how much of it is new in the directory.

    `files` and `bytes` are those of the backup; `files_new` and `bytes_new` were not there before.
    """

    id: str
    directory: str
    created_at: str
    tables: Mapping[str, str]
    files: int
    bytes: int
    files_new: int
    bytes_new: int
    left_out: tuple[str, ...]
    sentence: str

    @property
    def did_something(self) -> bool:
        """A backup always writes a manifest."""
        return True

    def to_json(self) -> dict[str, object]:
        """The report as a JSON value."""
        return {**vars(self), "tables": dict(self.tables), "left_out": list(self.left_out)}


def check_directory(home: Home, directory: Path, rules: InputRules | None = None) -> Path:
    """The backup directory as an absolute path. UsageError when it and the home contain each other.

    RightError when work that was sent to a server may not use it: by `rules`, or by those of the run in progress.
    """
    path = Path(os.path.realpath(directory.expanduser()))
    folder = Path(os.path.realpath(home.folder))
    if path == folder or folder in path.parents or path in folder.parents:
        raise UsageError(f"{directory} and the home {home.folder} contain each other. Nothing was written.")
    rules = rules or home.input_rules
    refusal = rules.refusal(path) if rules is not None else None
    if refusal is not None:
        raise RightError(
            f"'{str(directory)[:200]}' may not hold backups of this server: {refusal}.",
            hint="Name a folder of the setting input_folders, or run the command on the server's machine.",
        )
    return path


def create_backup(home: Home, directory: Path, tables: Sequence[str] | None = None) -> BackupReport:
    """Back up all tables of a home, or the named ones. Earlier backups in the directory stay as they are.

    NotFoundError for an unknown table; DataError for data without a definition; ConflictError when another backup is
    being made there. No backup is made then.
    """
    home.require_folder()
    if tables is not None and not tables:
        raise UsageError("Which tables? Name at least one, or leave the list out for all.")
    folder = check_directory(home, directory)
    names = None if tables is None else [home.spec(name).name for name in dict.fromkeys(tables)]
    store, act = BackupStore.prepare(folder), home.act_id("backup")
    with store.writing(home.settings.lock_timeout_s):
        made = next(store.newest_first(ending=_ending(act)), None)
        if made is not None and made.act == act:  # by this run, before its process was killed
            return _report(made, store, set())
        store.sweep_parts()
        known = _known_files(store, home.folder)
        report = _Creation(home, store, names, act, known).run()
        remove_surplus_if_free(store, home.progress)
        return report


def _known_files(store: BackupStore, home: Path) -> dict[str, BackupFile]:
    """The newest file of each path in the backups of a home, back to the newest whole one: a partial one has few."""
    known, own_id = dict[str, BackupFile](), home_id(home)
    for manifest in store.newest_first():
        if manifest.is_of(str(home), own_id):
            known = {file.path: file for file in manifest.files} | known
            if manifest.whole:
                break
    return known


@dataclass
class _Creation:
    """A backup in progress. `known` are files of earlier backups and of this one by path, which need not be read again.

    `stored` are the files of each part of the home, `new` the digests of objects that were missing.
    """

    home: Home
    store: BackupStore
    names: list[str] | None
    act: str
    known: dict[str, BackupFile]
    stored: dict[tuple[str, ...], list[BackupFile]] = field(default_factory=dict)
    new: set[str] = field(default_factory=set)
    left_out: list[str] = field(default_factory=list)

    def run(self) -> BackupReport:
        home = self.home
        pinned = self._pinned()
        self._store_catalog()
        step("backup.pinned")
        for attempt in range(_ATTEMPTS):
            total = sum(len(table.files) for table in pinned.values())
            home.progress.say(f"Copying {counted(total, 'file')} of {counted(len(pinned), 'table')}.")
            gone = [name for name, table in pinned.items() if not self._is_copied(table)]
            if not gone:
                break
            for name in gone:
                home.progress.say(f"Files of '{name}' were removed while they were copied; it is pinned again.")
                self._pin_again(pinned, name, attempt)
            self._store_catalog()  # it must not be older than the halves
        self._store_rest()
        step("backup.copied")
        return self._publish(pinned)

    def _publish(self, pinned: Mapping[str, BackupSource]) -> BackupReport:
        # Not the time of publishing: a purge in between would seem to be older than rows that the backup still holds.
        created_at = min((table.table.pinned_at for table in pinned.values()), default=stamp(wall_clock_ms()))
        moment = created_at.replace("-", "").replace(":", "").replace(".", "").rstrip("Z")
        manifest = BackupManifest(
            id=f"{moment}Z-{_ending(self.act)}",
            act=self.act,
            created_at=created_at,
            product=version("hybrid"),
            home=str(self.home.folder),
            whole=self.names is None,
            tables=tuple(pinned[name].table for name in sorted(pinned)),
            files=tuple(sorted((file for files in self.stored.values() for file in files), key=lambda file: file.path)),
            left_out=tuple([*_ALWAYS_LEFT_OUT, *self.left_out]),
            home_id=home_id(self.home.folder),
            host=socket.gethostname(),
        )
        self.store.sync_objects({file.sha256 for file in manifest.files})
        self.store.publish(manifest)
        return _report(manifest, self.store, self.new)

    def _pinned(self) -> dict[str, BackupSource]:
        if self.names is None:
            require_definitions(self.home)
        names = self.home.definitions.names() if self.names is None else self.names
        pinned = dict[str, BackupSource]()
        for name in names:
            table = self._pin(name)
            if table is not None:
                pinned[name] = table
        return pinned

    def _pin(self, name: str) -> BackupSource | None:
        """Pin a table; None when it was dropped meanwhile, and nobody asked for it by its name."""
        try:
            return pin_table(self.home, name)
        except NotFoundError:
            if self.names is not None or self.home.definitions.find(name) is not None:
                raise
            return None

    def _pin_again(self, pinned: dict[str, BackupSource], name: str, attempt: int) -> None:
        table = self._pin(name)
        if table is None:
            del pinned[name]
        elif attempt == _ATTEMPTS - 1:
            raise DataError(f"Files of table '{name}' are missing. No backup was made.", hint="hybrid doctor")
        else:
            pinned[name] = table

    def _is_copied(self, table: BackupSource) -> bool:
        """Store the files of a table. False when one was removed, or the table created again."""
        name = table.layout.root.name
        if (_WAREHOUSE, name) in self.stored:
            return True
        try:
            files = self._store_files(table.layout.root, f"{_WAREHOUSE}/{name}", table.files)
        except (FileNotFoundError, NotADirectoryError):
            return False
        if not table.is_same_table():
            return False
        documents = table.documents.items()
        files += [self._store_bytes(f"{_WAREHOUSE}/{name}/{path}", *astuple(one)) for path, one in documents]
        self.stored[_WAREHOUSE, name] = files
        return True

    def _store_files(self, root: Path, prefix: str, paths: Sequence[str]) -> list[BackupFile]:
        def store(path: str) -> BackupFile:
            return self._store_file(root, prefix, path)

        return in_threads(store, paths, self.home.progress, f"copying '{root.name}'")

    def _store_file(self, root: Path, prefix: str, relative: str) -> BackupFile:
        path, name = root / relative, f"{prefix}/{relative}"
        status = path.stat()
        before = self.known.get(name)
        if before is not None and before.is_still(status) and self.store.has(before.sha256, before.size):
            return before
        stored = self._noted(name, self.store.put_file(path), status.st_mtime_ns)
        file = replace(stored, inode=status.st_ino, changed_ns=status.st_ctime_ns)
        self.known[name] = file  # when its table is pinned again, it need not be read once more
        return file

    def _store_bytes(self, name: str, data: bytes, modified_ns: int | None = None) -> BackupFile:
        modified_ns = wall_clock_ms() * 1_000_000 if modified_ns is None else modified_ns
        return self._noted(name, self.store.put_bytes(data), modified_ns)

    def _noted(self, name: str, stored: StoredObject, modified_ns: int) -> BackupFile:
        if stored.is_new:
            self.new.add(stored.sha256)
        return BackupFile(name, stored.size, stored.sha256, modified_ns)

    def _store_catalog(self) -> None:
        catalog = copy_catalog(self.home)
        if catalog is not None:
            self.stored[(CATALOG,)] = [self._store_bytes(CATALOG, catalog)]

    def _store_rest(self) -> None:
        """Store accounts, settings and schemas of the home; with named tables, only the schemas of their names."""
        home, files = self.home, list[BackupFile]()
        if (access := _content(home.folder / ACCESS_FILE)) is not None:
            files.append(self._store_bytes(ACCESS_FILE, access))
        if (settings := _content(home.folder / SETTINGS)) is not None:
            text, keys = portable_settings(settings.decode("utf-8"))
            if text is None:
                self.left_out.append(f"{SETTINGS}: it holds secrets that cannot be taken out line by line")
            else:
                files.append(self._store_bytes(SETTINGS, text.encode()))
                self.left_out += [f"{SETTINGS}: {', '.join(keys)}"] if keys else []
        for path in _schemas(home.settings.warehouse / _SCHEMAS):
            if (self.names is None or path.stem in self.names) and (schema := _content(path)) is not None:
                files.append(self._store_bytes(f"{_WAREHOUSE}/{_SCHEMAS}/{path.name}", schema))
        dropped = home.settings.warehouse / ".dropped"
        if dropped.is_dir() and (copies := len(list(dropped.iterdir()))):
            self.left_out.append(f"{counted(copies, 'dropped table')}: hybrid table undrop brings one back")
        if self.names is None and (remote := sorted(home.remote.names())):
            names = ", ".join(remote[:_NAMES_MAX]) + (", ..." if len(remote) > _NAMES_MAX else "")
            held = f"{counted(len(remote), 'table')} that other query servers hold ({names})"
            self.left_out.append(f"{held}: each server backs up its own, into a directory of its own")
        self.stored[()] = files


def _ending(act: str) -> str:
    """The end of the id of the backup that a run makes: by it a run that is repeated finds what it has made."""
    return hashlib.sha256(act.encode()).hexdigest()[:6]


def _schemas(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.glob("*.json") if is_table_name(path.stem))


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _report(manifest: BackupManifest, store: BackupStore, new: AbstractSet[str]) -> BackupReport:
    objects = {file.sha256: file.size for file in manifest.files}
    new_objects = {sha256: size for sha256, size in objects.items() if sha256 in new}
    bytes_new = sum(new_objects.values())
    shared, bytes_shared = len(objects) - len(new_objects), sum(objects.values()) - bytes_new
    sentence = (
        f"Backed up {counted(len(manifest.tables), 'table')} as {manifest.id} in {store.folder}: "
        f"{counted(len(new_objects), 'new file')} ({counted(bytes_new, 'byte')}), "
        f"{shared} shared with earlier backups ({counted(bytes_shared, 'byte')})."
    )
    return BackupReport(
        id=manifest.id,
        directory=str(store.folder),
        created_at=manifest.created_at,
        tables={table.name: table.revision for table in manifest.tables},
        files=len(manifest.files),
        bytes=manifest.bytes,
        files_new=len(new_objects),
        bytes_new=bytes_new,
        left_out=manifest.left_out,
        sentence=sentence,
    )
