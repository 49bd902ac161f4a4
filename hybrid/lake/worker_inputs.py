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
class WorkerInputs:
    """Files for workers. Without `store` they see them by their paths; else `keys` are those on the store."""

    store: StoreAccess | None = None
    keys: Mapping[Path, str] = field(default_factory=dict)

    @classmethod
    def of(cls, bench: Workers, paths: Sequence[Path], folder: Path) -> WorkerInputs:
        """Let workers have some files. `folder` lies in the operation's staging folder, with which the uploads go."""
        mirror = workers_store(bench, folder)
        if mirror is None:
            return cls()
        prefix = store_key(mirror, folder)
        keys = {path: f"{prefix}/{number}" for number, path in enumerate(dict.fromkeys(paths))}
        for_all(lambda path: mirror.client.upload_file(keys[path], path), list(keys))
        return cls(StoreAccess.of_process(mirror.url, mirror.tuning), keys)

    @contextmanager
    def opened(self) -> Iterator[Callable[[Path], Path]]:
        """For a task: a function that gives the path at which a file can be read. It has one file at a time.

        StoreError when the store does not have it any more.
        """
        if self.store is None:
            yield lambda path: path
            return
        client, last = self.store.client(), dict[Path, Path]()
        with worker_folder() as folder:

            def fetched(path: Path) -> Path:
                if path not in last:
                    for copy in last.values():
                        copy.unlink(missing_ok=True)
                    last.clear()
                    copy = folder / path.name
                    if not client.download(self.keys[path], copy):
                        raise StoreError(f"{self.keys[path]}, a copy of {path}, is not there any more.")
                    last[path] = copy
                return last[path]

            yield fetched
