"""Where Spark's workers put the files of a half: into its folder, or on the warehouse's store (docs/adr/0065).

On a store a file is uploaded under its final key, and is invisible until a log entry names it. The process that commits
brings it into the mirror first (`Mirror.adopt`), and then commits as ever.
"""

from __future__ import annotations

import errno
import os
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote

from hybrid.errors import DataError, MachineError
from hybrid.lake.failpoints import step
from hybrid.lake.files import LaidFile, RowsFile, path_in_half
from hybrid.runtime import durable
from hybrid.store.mirror import for_all, mirror_at

if TYPE_CHECKING:
    from hybrid.store.store_backend import StoreTuning
    from hybrid.store.store_client import StoreClient

_FULL = (errno.ENOSPC, errno.EDQUOT)
# Variables that name files of this machine, which a worker does not have.
_FILES = frozenset({"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "AWS_CONFIG_FILE"})


@dataclass(frozen=True)
class StoreAccess:
    """A warehouse's store for workers: its URL, and the variables with keys and endpoint, which `repr` leaves out.

    It reaches workers inside of the function that they run: not in Spark's settings, which its UI and event log show.
    """

    url: str
    variables: Mapping[str, str] = field(repr=False)
    tuning: StoreTuning | None = None

    @classmethod
    def of_process(cls, url: str, tuning: StoreTuning | None = None) -> StoreAccess:
        """The access that this process has."""
        names = [name for name in os.environ if name.startswith("AWS_") and name not in _FILES]
        return cls(url, {name: os.environ[name] for name in names}, tuning)

    def client(self) -> StoreClient:
        """A client. A variable that the process of the home did not have is the worker's own."""
        from hybrid.store.store_client import open_store

        before = {name: os.environ.get(name) for name in self.variables}
        os.environ.update(self.variables)
        try:
            return open_store(self.url, self.tuning)
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value


class Workers(Protocol):
    """Spark's workers, by what they see: the context of commits is one."""

    has_shared_files: bool


@dataclass(frozen=True)
class WorkerFiles:
    """A half, as workers write to it. Make it in the process that commits: workers have no settings.

    `store` and `key`, the half's folder there, are for workers that do not see the home's folders.
    """

    half: Path
    is_durable: bool
    store: StoreAccess | None = None
    key: str = ""

    @classmethod
    def of(cls, bench: Workers, half: Path) -> WorkerFiles:
        """The files of a half, by the home's setting `spark.worker_files`."""
        mirror = None if bench.has_shared_files else mirror_at(half)
        if mirror is None:
            return cls(half, durable.is_enabled(half))
        return cls(half, False, StoreAccess.of_process(mirror.url, mirror.tuning), mirror.key_of(half))

    @contextmanager
    def opened(self, act_id: str, statistics: Sequence[str]) -> Iterator[SegmentFiles]:
        """Writers of an operation's files, for one task of a worker. Its temporary folder is removed at the end."""
        if self.store is None:
            yield SegmentFiles(self.half, act_id, statistics, is_durable=self.is_durable)
            return
        with worker_folder() as folder:
            yield UploadedFiles(folder, act_id, statistics, self.store.client(), self.key)


class SegmentFiles:
    """The open files of a task in a worker, by segment, below a folder."""

    def __init__(self, folder: Path, act_id: str, statistics: Sequence[str], *, is_durable: bool) -> None:
        self._folder, self._act_id, self._statistics, self._is_durable = folder, act_id, statistics, is_durable
        self._open: dict[str, RowsFile] = {}

    @property
    def segments(self) -> list[str]:
        """The segments with an open file, in the order of opening."""
        return list(self._open)

    def open(self, segment: str) -> RowsFile:
        """The open file of a segment; a new one if none is open."""
        if segment not in self._open:
            folder = self._folder / path_in_half(segment, "")
            self._open[segment] = RowsFile(folder, self._act_id, self._statistics, is_durable=self._is_durable)
        return self._open[segment]

    def close(self, segment: str) -> dict[str, object]:
        """Complete the file of a segment. Returns its log entry."""
        file = self._open.pop(segment).close()
        self._completed(path_in_half(segment, file.name), file)
        return file.entry(segment)

    def _completed(self, name: str, file: LaidFile) -> None:
        """A complete file, by its path below the folder."""


class UploadedFiles(SegmentFiles):
    """The same in a temporary folder: a complete file goes to the store, and from the worker's disk."""

    def __init__(self, folder: Path, act_id: str, statistics: Sequence[str], client: StoreClient, key: str) -> None:
        super().__init__(folder, act_id, statistics, is_durable=False)
        self._client, self._key = client, key

    def _completed(self, name: str, file: LaidFile) -> None:
        upload_complete(self._client, f"{self._key}/{name}", self._folder / name)


def upload_complete(client: StoreClient, key: str, path: Path) -> None:
    """Upload a file that a worker has completed, and remove it from the worker's disk."""
    step("worker.written")
    client.upload_file(key, path)
    step("worker.uploaded")
    path.unlink()


@contextmanager
def worker_folder() -> Iterator[Path]:
    """A temporary folder of a task: in Spark's local folder, which goes with the application when the worker is killed.

    MachineError with the worker's host when its disk is full.
    """
    local = os.environ.get("SPARK_LOCAL_DIRS", "").partition(",")[0]
    parent = local if local and os.path.isdir(local) else tempfile.gettempdir()
    try:
        with tempfile.TemporaryDirectory(prefix="hybrid-", dir=parent, ignore_cleanup_errors=True) as folder:
            yield Path(folder)
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise MachineError(
            f"The disk of the Spark worker on {socket.gethostname()} is full: {parent}. Nothing was committed.",
            hint="Make room there, or name another folder: SPARK_LOCAL_DIRS of that worker.",
        ) from error


def bring_uploaded(half: Path, entries: Sequence[Mapping[str, Any]]) -> None:
    """Bring the files of log entries, which workers have uploaded, into the mirror: several at once.

    StoreError when the store does not have one in the size that the worker gave.
    """
    mirror = mirror_at(half)
    if mirror is None:
        raise DataError(f"{half} is no mirror of a store any more. Nothing was committed.")
    files = [(unquote(entry["add"]["path"]), int(entry["add"]["size"])) for entry in entries]
    for_all(lambda file: mirror.adopt(half, *file), files)
    step("worker.brought")
