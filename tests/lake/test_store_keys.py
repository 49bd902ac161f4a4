"""Where on a store the files of a table are, and by which names; a half's indexed columns. No request is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.errors import SpecError
from hybrid.lake.layout import INDEXED, TableLayout, indexed_columns
from hybrid.lake.store_keys import plans_prefix, store_key, workers_store
from hybrid.lake.worker_files import WorkerFiles
from hybrid.store.mirror import Mirror, configure, mirror_at
from hybrid.store.ownership import WarehouseOwner
from hybrid.store.plan_files import PUSH_KEY


class Sees:
    """Workers that see the home's folders, or do not."""

    def __init__(self, has_shared_files: bool) -> None:
        self.has_shared_files = has_shared_files


@pytest.fixture
def layout(tmp_path: Path) -> TableLayout:
    """A table with both halves in the mirror of a store that nobody asks."""
    folder = tmp_path / "warehouse"
    configure(folder, "s3://bucket/prefix", lambda: WarehouseOwner("a" * 32, "host:a"))
    layout = TableLayout(folder / "t")
    layout.root.mkdir(parents=True)
    for half, key in (("OFFLINE", "OFFLINE-00000001"), ("REALTIME", "REALTIME-00000002")):
        (layout.root / f"{half}.key").write_text(key)
    return layout


def mirror_of(layout: TableLayout) -> Mirror:
    mirror = mirror_at(layout.root)
    assert mirror is not None
    return mirror


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("OFFLINE/_hy_segment=a%20b/f.parquet", "t/OFFLINE-00000001/_hy_segment=a%20b/f.parquet"),
        ("REALTIME/_hy_segment=a/f.parquet", "t/REALTIME-00000002/_hy_segment=a/f.parquet"),
        ("plans/backfill-1/rows/x/f.parquet", "t/OFFLINE-00000001.plans/backfill-1/rows/x/f.parquet"),
        ("plans/open-1/pushes/2/rows/f.parquet", "t/OFFLINE-00000001.plans/open-1/replace-7.abc/rows/f.parquet"),
        ("staging/backfill-1/rows/x", "t/OFFLINE-00000001.plans/backfill-1/rows/x"),
        ("staging/replace-1/input", "t/OFFLINE-00000001.plans/replace-1/staged/input"),
        ("staging/merge-1", "t/OFFLINE-00000001.plans/merge-1/staged"),
    ],
)
def test_each_path_has_a_key(layout: TableLayout, path: str, key: str) -> None:
    push = layout.plan("open-1") / "pushes" / "2"
    push.mkdir(parents=True)
    (push / PUSH_KEY).write_text("replace-7.abc")
    assert store_key(mirror_of(layout), layout.root / path) == key


def test_a_table_without_offline_stages_beside_realtime(layout: TableLayout) -> None:
    (layout.root / "OFFLINE.key").unlink()
    assert plans_prefix(mirror_of(layout), layout.root) == "t/REALTIME-00000002.plans"


def test_workers_have_the_store_where_they_lack_the_folders(layout: TableLayout, tmp_path: Path) -> None:
    half = layout.root / "OFFLINE"
    assert workers_store(Sees(True), half) is None and WorkerFiles.of(Sees(True), half).store is None
    assert workers_store(Sees(False), half) is mirror_of(layout)
    assert WorkerFiles.of(Sees(False), half).key == "t/OFFLINE-00000001"
    with pytest.raises(SpecError, match="is for a warehouse on an object store"):
        workers_store(Sees(False), tmp_path / "elsewhere" / "t")


def test_indexed_columns_are_those_of_the_property() -> None:
    assert indexed_columns({}) == [] and indexed_columns({INDEXED: "a,`b, c`,_hy_d"}) == ["a", "b, c", "_hy_d"]
