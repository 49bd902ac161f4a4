"""A table at one moment: both halves at versions that fit together, and its documents as they were then.

Two looks at everything but the halves stand around the pin. When they differ, the moment is taken again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.catalog.definitions import parse_definition
from hybrid.clock import wall_clock_ms
from hybrid.config.table_config import Half, TableSpec
from hybrid.errors import ConflictError, DataError, HybridError, NotFoundError
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import HalfSnapshot, open_half
from hybrid.operations.backups.backup_manifest import BackupTable
from hybrid.query.revision import PinnedHalves, TableRevision, pin_halves
from hybrid.runtime.json_values import stamp
from hybrid.store.mirror import DEFINITION_FILE, ENTRY_ENDING, KEY_ENDING
from hybrid.table.boundary import offsets_to_json

if TYPE_CHECKING:
    from hybrid.home.home import Home

_ROUNDS_MAX, _ERRORS_MAX = 100, 10
# Of the table's folder: rows of operations in progress, and locks.
# A restored table is another one, so it has no folder on a store.
_NOT_COPIED_ENDINGS = (".lock", ".part", KEY_ENDING, ENTRY_ENDING)
_NOT_COPIED_FOLDERS = frozenset({"staging", "rows.gone"})
_NOT_COPIED_FILES = frozenset({"running", "lock"})
_DOCUMENTS = (".json", ".acts")
# Entries and checkpoints of the log, by the last version that they describe.
_LOG_FILE = re.compile(r"(?:\d{20}\.)?(\d{20})\.(?!crc$).*")
_SIDECARS = "_sidecars"
_VECTORS = "deletion_vector_*.bin"

FileStamp = tuple[int, int, int]


@dataclass(frozen=True)
class Document:
    """A small file: its bytes, and its time in nanoseconds."""

    data: bytes
    modified_ns: int


@dataclass(frozen=True)
class BackupSource:
    """A pinned table. `documents` are small files by their path in the table's folder, `files` the paths of others."""

    table: BackupTable
    layout: TableLayout
    documents: Mapping[str, Document]
    files: tuple[str, ...]

    def is_same_table(self) -> bool:
        """Whether the halves at this place are still those that were pinned: not dropped, and created again."""
        try:
            return all(
                open_half(self.layout.half(Half(name))).table_id == table_id
                for name, table_id in self.table.ids.items()
            )
        except (NotFoundError, DataError):
            return False


def pin_table(home: Home, name: str) -> BackupSource:
    """Pin a table. NotFoundError when it does not exist; ConflictError when its folder never rests."""
    layout = home.layout(name)
    errors = list[HybridError | OSError]()
    for _ in range(_ROUNDS_MAX):
        before = _look(layout.root)
        if DEFINITION_FILE not in before:
            raise NotFoundError.named("Table", name, home.definitions.names())
        try:
            source = _source(home, layout, before)
        except (OSError, NotFoundError, DataError) as error:  # perhaps because it is dropped or cleaned just now
            errors.append(error)
            if len(errors) == _ERRORS_MAX:
                raise
            continue
        if _look(layout.root) == before:
            return source
    raise ConflictError(f"Table '{name}' was changed {_ROUNDS_MAX} times while a backup tried to pin it.")


def require_definitions(home: Home) -> None:
    """DataError when a folder of the warehouse holds a table's data without a definition.

    A table that is being created has no definition yet, but no commit after its creation either.
    """
    for root in sorted(home.settings.warehouse.glob("[!.]*")):
        for half in (half for half in Half if (root / half.value / "_delta_log").is_dir()):
            if not (root / DEFINITION_FILE).exists() and _has_data(root / half.value) and root.is_dir():
                raise DataError(
                    f"The definition of table '{root.name}' is missing, and {root / half.value} holds its data: "
                    "a backup of all tables would lack it. No backup was made.",
                    hint=f"hybrid doctor {root.name} --repair writes it again; --table backs up other tables.",
                )


def _has_data(half: Path) -> bool:
    """Whether a half has commits after its creation, or cannot be read. False when it is dropped just now."""
    try:
        return open_half(half).state.act.number > 0
    except NotFoundError:
        return False
    except HybridError:
        return half.is_dir()


def _source(home: Home, layout: TableLayout, look: Mapping[str, FileStamp]) -> BackupSource:
    """The table as it is now; `look` has the files beside its halves."""
    documents = {
        path: Document((layout.root / path).read_bytes(), modified_ns)
        for path, (_, _, modified_ns) in look.items()
        if path.endswith(_DOCUMENTS)
    }
    spec = home.spec_of(parse_definition(documents[DEFINITION_FILE].data, layout.root / DEFINITION_FILE))
    pinned_at = stamp(wall_clock_ms())
    halves = pin_halves(spec, layout)
    files = {*_files_of(halves), *(path for path in look if path not in documents)}
    return BackupSource(_described(spec, halves, pinned_at), layout, documents, tuple(sorted(files)))


def _look(root: Path) -> dict[str, FileStamp]:
    """Inode, size and time of each file of a table but those of its halves, by path."""
    return dict(_walk(root, "")) if root.is_dir() else {}


def _walk(folder: Path, prefix: str) -> Iterator[tuple[str, FileStamp]]:
    halves = {half.value for half in Half} if not prefix else frozenset[str]()
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in entries:
        name = entry.name
        if name.startswith(".") or name in halves or name.endswith(_NOT_COPIED_ENDINGS):
            continue
        if entry.is_dir(follow_symlinks=False):
            if name not in _NOT_COPIED_FOLDERS:
                yield from _walk(folder / name, f"{prefix}{name}/")
        elif name not in _NOT_COPIED_FILES:
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue
            yield f"{prefix}{name}", (status.st_ino, status.st_size, status.st_mtime_ns)


def _files_of(halves: PinnedHalves) -> list[str]:
    """The data files and the log's files of both halves, as paths in the table's folder."""
    return [
        f"{half.path.name}/{path}"
        for half in (halves.offline, halves.realtime)
        if half is not None
        for path in (*_data_files(half), *_log_files(half))
    ]


def _data_files(half: HalfSnapshot) -> Iterator[str]:
    for file in half.files:
        path = Path(file.path)
        if not path.is_relative_to(half.path):
            raise DataError(f"{half.path}: its file {path} lies outside of it. Such a table cannot be backed up.")
        yield str(path.relative_to(half.path))
    if half.has_deletion_vectors:
        yield from (str(path.relative_to(half.path)) for path in half.path.rglob(_VECTORS))


def _log_files(half: HalfSnapshot) -> list[str]:
    """Entries and checkpoints up to the version. FileNotFoundError when the newest entry is not there."""
    folder, names = half.path / "_delta_log", list[str]()
    with os.scandir(folder) as entries:
        for entry in entries:
            match = _LOG_FILE.fullmatch(entry.name)
            if match is not None and int(match[1]) <= half.version and entry.is_file():
                names.append(entry.name)
    if f"{half.version:020d}.json" not in names:
        raise FileNotFoundError(folder / f"{half.version:020d}.json")
    if (folder / _SIDECARS).is_dir():
        names += [f"{_SIDECARS}/{path.name}" for path in (folder / _SIDECARS).iterdir()]
    return [f"_delta_log/{name}" for name in sorted(names)]


def _described(spec: TableSpec, halves: PinnedHalves, pinned_at: str) -> BackupTable:
    offline, realtime = halves.offline, halves.realtime
    present = [half for half in (offline, realtime) if half is not None]
    has_both = offline is not None and realtime is not None
    limit_ms = offline.effective_boundary(spec.boundary_lag_ms).limit_ms if offline and has_both else None
    revision = TableRevision(
        spec.name,
        offline.version if offline else None,
        realtime.version if realtime else None,
        halves.boundary,
        limit_ms=limit_ms,
    )
    return BackupTable(
        name=spec.name,
        pinned_at=pinned_at,
        versions={half.path.name: half.version for half in present},
        ids={half.path.name: half.table_id for half in present},
        revision=str(revision),
        boundary=halves.boundary.to_json() if has_both else None,
        offsets=offsets_to_json(realtime.realtime.offsets) if realtime else {},
        rows={half.path.name: sum(file.rows for file in half.files) for half in present},
    )
