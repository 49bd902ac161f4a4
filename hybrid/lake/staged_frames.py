"""Rows of an operation, staged beside the halves by Spark's workers: in the home's folder, or on the store.

On the store workers upload each file below the operation's own prefix (`hybrid.lake.store_keys`), from which it is read
again. What the home needs itself is brought to its folder.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from hybrid.errors import HybridError
from hybrid.lake.failpoints import step
from hybrid.lake.file_frames import StoredFile, stored_file_rows
from hybrid.lake.store_keys import STAGED, plans_prefix, store_key, workers_store
from hybrid.lake.worker_files import StoreAccess, WorkerFiles, upload_complete, worker_folder
from hybrid.lake.worker_output import returning, write_segments, written_texts
from hybrid.lake.workers import Worker
from hybrid.runtime import durable
from hybrid.store.mirror import for_all, mirror_at
from hybrid.store.plan_files import PLANS_FOLDER
from hybrid.table.columns import SEGMENT, TIME

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from hybrid.lake.commit_context import CommitContext

Put = Callable[[str], None]


@dataclass(frozen=True)
class StagedPlace:
    """A folder in the staging folder of an operation, as workers write to it. Make it in the driver.

    With `store` and `key`, the folder's place there, workers upload their files.
    """

    folder: Path
    is_durable: bool
    store: StoreAccess | None = None
    key: str = ""

    @classmethod
    def here(cls, folder: Path) -> StagedPlace:
        """A folder that workers see, or for threads of this process."""
        return cls(folder, durable.is_enabled(folder))

    @classmethod
    def of(cls, bench: CommitContext, folder: Path) -> StagedPlace:
        """A folder, by the home's setting `spark.worker_files`."""
        mirror = workers_store(bench, folder)
        if mirror is None:
            return cls.here(folder)
        return cls(folder, False, StoreAccess.of_process(mirror.url, mirror.tuning), store_key(mirror, folder))

    @contextmanager
    def opened(self) -> Iterator[tuple[Path, Put]]:
        """For a task of a worker: the folder to write to, and what takes a complete file by its name."""
        if self.store is None:
            yield self.folder, lambda name: None
            return
        client = self.store.client()
        with worker_folder() as folder:
            yield folder, lambda name: upload_complete(client, f"{self.key}/{name}", folder / name)

    def bring(self, files: Sequence[tuple[str, int]]) -> None:
        """Bring files, by (path below the folder, bytes), to the folder in the home: several at once.

        StoreError when the store does not have one in this size.
        """
        mirror = mirror_at(self.folder) if self.store is not None else None
        if mirror is None:
            return

        self.folder.mkdir(parents=True, exist_ok=True)
        for_all(
            lambda file: mirror.fetch_uploaded(f"{self.key}/{file[0]}", self.folder / file[0], file[1]), list(files)
        )
        step("worker.brought")


def stage_frame(
    bench: CommitContext, frame: DataFrame, folder: Path, schema: StructType | str | None = None
) -> DataFrame:
    """Stage the rows of a frame, and return a frame of them, which are computed once.

    `folder` lies in the operation's staging folder. `schema` is the frame's, where it is known.
    """
    schema, place = schema or frame.schema, StagedPlace.of(bench, folder)
    if place.store is None:
        frame.write.parquet(str(folder))
        return bench.session.read.schema(schema).parquet(str(folder))
    names = (json.loads(text)[0] for text in written_texts(frame, _uploader(place)))
    files = [StoredFile(f"{place.key}/{name}", str(folder / name)) for name in sorted(names)]
    return stored_file_rows(bench, schema, files, place.store)


def stage_files(bench: CommitContext, frame: DataFrame, folder: Path) -> None:
    """Stage the rows of a frame in a folder of the home, as Parquet files without an order."""
    place = StagedPlace.of(bench, folder)
    if place.store is None:
        frame.write.parquet(str(folder))
        return
    place.bring([tuple(json.loads(text)) for text in written_texts(frame, _uploader(place))])


def stage_segments(bench: CommitContext, frame: DataFrame, folder: Path) -> None:
    """Stage the rows of a frame in a folder of the home, each segment in its folder, as in a half.

    The rows of a segment follow each other in a task: on the store each run of them is a file.
    """
    place = StagedPlace.of(bench, folder)
    if place.store is None:
        frame.write.partitionBy(SEGMENT).parquet(str(folder))
        return
    names = [TIME] if TIME in frame.columns else []
    entries = write_segments(frame, WorkerFiles(folder, False, place.store, place.key), "staged", names)
    place.bring([(unquote(entry["add"]["path"]), int(entry["add"]["size"])) for entry in entries])


def remove_staged_files(folder: Path) -> None:
    """Remove what an operation has staged on the store, by its staging folder; with the rows of a plan that failed.

    What an error of the store leaves, `hybrid warehouse sync` removes. A home that has lost the warehouse removes
    nothing: another one may do the same operation again, under the same id.
    """
    mirror, table, act_id = mirror_at(folder), folder.parents[1], folder.name
    if mirror is None:
        return
    with suppress(HybridError):
        prefix = f"{plans_prefix(mirror, table)}/{act_id}"
        is_plan = (table / PLANS_FOLDER / act_id).exists()
        keys = [item.key for item in mirror.client.list_below(f"{prefix}/{STAGED}" if is_plan else prefix)]
        if keys:
            mirror.ownership.require(is_recent_enough=False)
        for_all(mirror.client.delete, keys)


def _uploader(place: StagedPlace) -> Worker:
    """Writes the rows of a task to one file. Its text is the file's name and bytes."""

    def write(batches: Iterable[pa.RecordBatch]) -> list[str]:
        import pyarrow.parquet as pq

        name, writer = f"part-{uuid.uuid4().hex}.parquet", None
        with place.opened() as (folder, put):
            try:
                for batch in batches:
                    if writer is None:
                        writer = pq.ParquetWriter(folder / name, batch.schema, compression="snappy")
                    writer.write_batch(batch)
            finally:
                if writer is not None:
                    writer.close()
            if writer is None:
                return []
            size = (folder / name).stat().st_size
            put(name)
        return [json.dumps([name, size])]

    return returning(write)
