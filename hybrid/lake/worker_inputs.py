"""Files of the home that Spark's workers read: as they are, or from the store, to which they were uploaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hybrid.errors import StoreError
from hybrid.lake.store_keys import store_key, workers_store
from hybrid.lake.worker_files import StoreAccess, Workers, worker_folder
from hybrid.store.mirror import for_all


@dataclass(frozen=True)
class InputReader:
    """Reader of input files in workers, which see them by their paths without `store`."""

    store: StoreAccess | None = None

    @contextmanager
    def opened(self) -> Iterator[Callable[[Path, str], Path]]:
        """For a task: a function that gives the path at which a file, with its key, can be read; one file at a time.

        StoreError when the store does not have it any more.
        """
        if self.store is None:
            yield lambda path, key: path
            return
        client, last = self.store.client(), dict[str, Path]()
        with worker_folder() as folder:

            def fetched(path: Path, key: str) -> Path:
                if key not in last:
                    for copy in last.values():
                        copy.unlink(missing_ok=True)
                    last.clear()
                    copy = folder / path.name
                    if not client.download(key, copy):
                        raise StoreError(f"{key}, a copy of {path}, is not there any more.")
                    last[key] = copy
                return last[key]

            yield fetched


@dataclass(frozen=True)
class WorkerInputs:
    """Files for workers. `keys` are those on the store; none where workers see the files."""

    reader: InputReader = InputReader()
    keys: Mapping[Path, str] = field(default_factory=dict)

    @property
    def is_uploaded(self) -> bool:
        """Whether workers read copies on the store."""
        return self.reader.store is not None

    @classmethod
    def of(cls, bench: Workers, paths: Sequence[Path], folder: Path) -> WorkerInputs:
        """Let workers have some files. `folder` lies in the operation's staging folder, with which the uploads go."""
        mirror = workers_store(bench, folder)
        if mirror is None:
            return cls()
        prefix = store_key(mirror, folder)
        keys = {path: f"{prefix}/{number}" for number, path in enumerate(dict.fromkeys(paths))}
        for_all(lambda path: mirror.client.upload_file(keys[path], path), list(keys))
        return cls(InputReader(StoreAccess.of_process(mirror.url, mirror.tuning)), keys)
