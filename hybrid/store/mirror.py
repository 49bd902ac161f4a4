"""A warehouse on an object store, and its mirror: the local copy that everything reads (docs/adr/0064).

What the store has, decides. The mirror may lack what nobody has acknowledged yet.

<prefix>/.warehouse.json                     which home writes this warehouse: see `hybrid.store.ownership`
<prefix>/<table>/definition.json             the definition, with the folders of its halves
<prefix>/<table>/<HALF>-<8 hex digits>/...   a Delta table as it is; other engines can read it there
<prefix>/<table>/<HALF>-<8 hex digits>.acts  the half's archive of operations
<prefix>/<table>/OFFLINE-<8 hex digits>.plans/...  plans: see `hybrid.store.published_plans`
<prefix>/.schemas/<name>.json                a schema that is stored on its own

A half that is created gets a folder of its own on the store, whose name the file <table>/<HALF>.key holds locally. So a
late writer of a table that was dropped never writes to another table of the same name.
"""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hybrid.errors import ConflictError, DataError, HybridError, SpecError, StoreError
from hybrid.runtime import durable
from hybrid.runtime.file_lock import file_lock
from hybrid.runtime.folder_setting import FolderSetting
from hybrid.store.store_location import parse_location

if TYPE_CHECKING:  # a home without a store must not pay for these imports
    from hybrid.store.conditional_put import ObjectContent
    from hybrid.store.ownership import Ownership, WarehouseOwner
    from hybrid.store.store_backend import StoreTuning
    from hybrid.store.store_client import StoreClient

T = TypeVar("T")

MARK_FILE = ".store"  # in the warehouse's folder: the URL of the store that it is a mirror of
CLAIM_LOCK = "warehouse.lock"  # in the home's folder: held by the process that claims the store
DEFINITION_FILE = "definition.json"
KEY_ENDING, ENTRY_ENDING = ".key", ".entry"
_PULLING = "pulling"
_THREADS, _ATTEMPTS = 8, 20
# A file that was written just now is not on the store yet, so nobody asks.
_NEW_S = 600.0
_KEY = re.compile(r"[A-Z]+-[0-9a-f]{8}")


class Mirror:
    """The mirror of a warehouse on a store. Thread-safe. Nothing is requested before the first use.

    `owner` gives this home, as the store knows it.
    """

    def __init__(
        self, folder: Path, url: str, owner: Callable[[], WarehouseOwner], tuning: StoreTuning | None = None
    ) -> None:
        self.folder, self.url = folder, parse_location(url).url
        self._owner, self.tuning = owner, tuning
        # Keys that workers uploaded and that were brought here just now, with their sizes.
        self._adopted: dict[str, int] = {}

    @cached_property
    def client(self) -> StoreClient:
        """The client of the store."""
        from hybrid.store.store_client import open_store

        return open_store(self.url, self.tuning)

    @cached_property
    def ownership(self) -> Ownership:
        """Which home writes this warehouse."""
        from hybrid.store.ownership import Ownership

        return Ownership(self.client, self._owner)

    def require_writable(self, *, is_recent_enough: bool = True) -> None:
        """ConflictError unless this home is the one that writes the warehouse, which an empty one becomes.

        `is_recent_enough`: a look at the store within the last seconds counts.
        """
        words = _mark_words(self.folder)
        if not words:
            self.claim()
        if _PULLING in words:
            raise ConflictError(
                f"{self.folder} does not have all of {self.url} yet: a pull was cut short. Nothing was written.",
                hint="hybrid warehouse pull --take-over",
            )
        self.ownership.require(is_recent_enough=is_recent_enough)

    def claim(self) -> None:
        """Make this home the one that writes, if neither the store nor the folder has tables. ConflictError else."""
        durable.make_private(self.folder.parent)
        with file_lock(self.folder.parent / CLAIM_LOCK):
            if read_mark(self.folder) is None:  # else another process of this home has done it just now
                self._claim()

    def _claim(self) -> None:
        if any(self.folder.glob(f"[!.]*/{DEFINITION_FILE}")):
            raise ConflictError(
                f"The tables of {self.folder} are not at {self.url} yet.",
                hint="hybrid warehouse push (copies them to the store)",
            )
        self.ownership.claim()
        mark(self.folder, self.url)

    def try_put(self, key: str, data: bytes, before: ObjectContent | None) -> bool:
        """Write an object in the place of `before`; None: where there is none. False when somebody else has written it.

        StoreError when the store does not say whether it wrote it.
        """
        from hybrid.store.conditional_put import PutOutcome, refuse_silence

        result = self.client.create(key, data) if before is None else self.client.replace(key, data, before.etag)
        refuse_silence(result, self.url, key)
        return result.outcome is PutOutcome.MADE

    def rewrite(self, key: str, change: Callable[[bytes], bytes]) -> bytes | None:
        """Change the bytes of an object in place. What it holds then; None without such an object.

        ConflictError when another home writes the warehouse, StoreError when the store does not answer. `change` gives
        equal bytes for equal ones, so whoever was faster has made the same change.
        """
        for _ in range(_ATTEMPTS):
            content = self.client.get(key)
            # Behind the look: whoever takes the warehouse over writes the object after that.
            self.require_writable(is_recent_enough=False)
            if content is None:
                return None
            data = change(content.data)
            if data == content.data or self.try_put(key, data, content):
                return data
        raise self.contended(key)

    def rewrite_text(self, key: str, change: Callable[[str], str]) -> str | None:
        """`rewrite` of an object that holds text."""
        data = self.rewrite(key, lambda data: change(data.decode()).encode())
        return None if data is None else data.decode()

    def contended(self, key: str) -> ConflictError:
        """The error for an object that others write again and again."""
        return ConflictError(f"{self.url}: somebody else writes {key} just now.", hint="Run it again.")

    def half_key(self, half: Path) -> str:
        """The name of a half's folder on the store, below its table's. DataError without one."""
        path = key_file(half)
        try:
            name = path.read_text(encoding="utf-8")
        except FileNotFoundError as error:
            raise DataError(
                f"{half} has no folder at {self.url}: {path.name} is missing.",
                hint="hybrid warehouse sync",
            ) from error
        if _KEY.fullmatch(name) is None:
            raise DataError(f"{path} is damaged.", hint="hybrid warehouse pull, to an empty home")
        return name

    def key_of(self, half: Path, name: str = "") -> str:
        """The key of a file of a half; `name` is its path below the half, decoded. Without one: of its folder."""
        key = f"{half.parent.name}/{self.half_key(half)}"
        return f"{key}/{name}" if name else key

    def upload_new(self, half: Path, files: Iterable[str], sizes: Iterable[int]) -> None:
        """Upload data files of a half, by their decoded paths below it. Those that the store has stay as they are.

        A file's content never changes under its name. StoreError when the store has another size of one.
        """
        tasks = list(zip(files, sizes, strict=True))
        for_all(lambda task: self._upload(half, *task), tasks)

    def _upload(self, half: Path, name: str, size: int) -> None:
        key, path = self.key_of(half, name), half / name
        there = self._adopted.pop(key, None)
        if there is None and time.time() - path.stat().st_mtime >= _NEW_S:
            there = self.client.size_of(key)
        if there is None:
            self.client.upload_file(key, path)
        elif there != size:
            raise StoreError(f"{self.url}: {key} has {there} bytes, but the file of this home has {size}.")

    def adopt(self, half: Path, name: str, size: int) -> None:
        """Bring a data file that a worker has uploaded under its final key. The next `upload_new` of it does nothing.

        StoreError when the store does not have it in this size.
        """
        key = self.key_of(half, name)
        self.fetch_uploaded(key, half / name, size)
        self._adopted[key] = size

    def fetch_uploaded(self, key: str, path: Path, size: int) -> None:
        """Download a file that a worker has uploaded. StoreError when the store does not have it in this size."""
        if not self.fetch(key, path) or path.stat().st_size != size:
            there = f"{path.stat().st_size} bytes" if path.exists() else "nothing"
            path.unlink(missing_ok=True)
            raise StoreError(
                f"{self.url}: a worker uploaded {key} with {size} bytes, but the store has {there}. Nothing was "
                "committed.",
                hint="Run it again.",
            )

    def upload(self, half: Path, name: str) -> None:
        """Upload a file of a half that may replace an older one, such as a checkpoint."""
        self.client.upload_file(self.key_of(half, name), half / name)

    def delete(self, half: Path, names: Iterable[str]) -> None:
        """Delete files of a half on the store."""
        for_all(lambda name: self.client.delete(self.key_of(half, name)), list(names))

    def delete_halves(self, table: str, keys: Iterable[str]) -> None:
        """Delete all objects of a dropped table's halves, by the names of their folders."""
        self.require_writable(is_recent_enough=False)
        for key in keys:
            for folder in (f"{table}/{key}", f"{table}/{key}.plans"):
                for_all(lambda item: self.client.delete(item.key), self.client.list_below(folder))
            self.client.delete(f"{table}/{key}.acts")

    def fetch(self, key: str, path: Path, size: int | None = None) -> bool:
        """Download an object to a path, atomically and synced, unless a file of this size is there.

        False when the store has no such object.
        """
        if size is not None and path.is_file() and path.stat().st_size == size:
            return True
        durable.make_folder(path.parent)
        part = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")  # vacuum removes what a killed process leaves
        try:
            if not self.client.download(key, part):
                return False
            durable.sync(part)
            durable.rename(part, path)
        finally:
            part.unlink(missing_ok=True)
        return True


_MIRRORS: FolderSetting[Mirror | HybridError | None] = FolderSetting(None)


def configure(folder: Path, url: str | None, owner: Callable[[], WarehouseOwner]) -> None:
    """Set the store of a warehouse's folder, by its home's setting `warehouse`; None: the folder alone.

    A folder that is the mirror of another store can be read, but writing to it raises SpecError.
    """
    there = read_mark(folder)
    if url is None and there is None:
        return
    kept = _MIRRORS.at(folder)
    mirror = None if url is None else Mirror(folder, url, owner)
    if mirror is not None and isinstance(kept, Mirror) and (kept.folder, kept.url) == (folder, mirror.url):
        mirror = kept  # with its connections, and what it knows of the store
    if mirror is None or there not in (None, mirror.url):
        now = "is not set" if mirror is None else f"names {mirror.url}"
        error = SpecError(
            f"{folder} is the mirror of {there}, but the setting 'warehouse' {now}.",
            hint=f'Set warehouse = "{there}" in hybrid.toml, or HYBRID_WAREHOUSE.',
        )
        _MIRRORS.set(folder, error)
        return
    _MIRRORS.set(folder, mirror)


def mirror_at(path: Path) -> Mirror | None:
    """The mirror that a path lies in; None in a warehouse of local folders.

    SpecError in the mirror of a store that the home's settings do not name: what is written there would be lost.
    """
    mirror = _MIRRORS.at(path)
    if isinstance(mirror, HybridError):
        raise mirror
    return mirror


def refuse_marked(folder: Path) -> None:
    """SpecError when a folder has become a mirror since this process opened its home without a store."""
    if os.path.exists(f"{folder}/{MARK_FILE}"):
        raise SpecError(
            f"{folder} is the mirror of {read_mark(folder)} now, of which this process does not know.",
            hint="Start it again with the setting 'warehouse'.",
        )


def read_mark(folder: Path) -> str | None:
    """The URL of the store that a warehouse's folder is a mirror of, or None."""
    return next(iter(_mark_words(folder)), None)


def is_pulled_in_part(folder: Path) -> bool:
    """Whether a pull to a warehouse's folder did not end."""
    return _PULLING in _mark_words(folder)


def mark(folder: Path, url: str, *, is_pulling: bool = False) -> None:
    """Note that a warehouse's folder is a mirror of this store. `is_pulling`: it may lack what the store has."""
    durable.make_private(folder.parent)
    durable.make_folder(folder)
    durable.write_text(folder / MARK_FILE, f"{url} {_PULLING}" if is_pulling else url)


def _mark_words(folder: Path) -> list[str]:
    try:
        return (folder / MARK_FILE).read_text(encoding="utf-8").split()
    except (FileNotFoundError, NotADirectoryError):
        return []


def key_file(half: Path) -> Path:
    """The file that holds the name of a half's folder on the store."""
    return half.with_name(f"{half.name}{KEY_ENDING}")


def new_half_key(half: Path) -> None:
    """Give a half that is being created a folder of its own on the store."""
    durable.write_text(key_file(half), f"{half.name}-{uuid.uuid4().hex[:8]}")


def half_keys(table: Path) -> dict[str, str]:
    """The names of the folders of a table's halves on the store, by half."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted(table.glob(f"*{KEY_ENDING}"))}


def for_all(work: Callable[[T], object], items: list[T]) -> None:
    """Do work on each item, several at once. The first error ends it."""
    if len(items) < 2:
        for item in items:
            work(item)
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(min(_THREADS, len(items))) as pool:
        for _ in pool.map(work, items):
            pass
