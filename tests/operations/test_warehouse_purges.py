"""Purges and erasures in a warehouse on a real S3 server: no object, and no version of one, holds the rows then."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.config.table_config import Half
from hybrid.errors import ConflictError, StoreError
from hybrid.lake.checkpoint import write_checkpoint
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.store_log import align
from hybrid.operations.backfill_change import BackfillChange
from hybrid.operations.erasure import Erasure
from hybrid.operations.purge import copies_with_rows
from hybrid.operations.tables.drop import drop_table, dropped_copies, remove_copy
from hybrid.operations.warehouse import pull
from hybrid.operations.warehouse.follow import WarehouseFollower
from hybrid.operations.warehouse.pull import pull_warehouse
from hybrid.operations.warehouse.push import push_warehouse
from hybrid.operations.warehouse.sync import sync_warehouse
from hybrid.replace.backfill.options import BackfillOptions
from hybrid.replace.purge import purged_store
from hybrid.replace.purge.report import PurgeReport, purge_records
from hybrid.store.mirror import Mirror, half_keys
from hybrid.store.store_backend import StoreTuning
from tests.early_death import ends_at
from tests.operations.erasure_home import HOUR, NAME, NEW, ORDER, WHERE, fill, new_table, open_home, places_of
from tests.operations.warehouse_homes import findings, frozen_at, keys, mirror_of, soon
from tests.query.halves import Halves
from tests.replace.backfill.lab import Lab, row
from tests.replace.purge.erasing import stream
from tests.s3_server import S3Server, needs_s3, s3_server

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(600), needs_s3]
PLAIN, VERSIONED = "bucket", "versioned"
Open = Callable[[str], Hybrid]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the server keeps objects, their versions, and parts of uploads."""
    return tmp_path_factory.mktemp("s3")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[S3Server]:
    (folder / "versions").mkdir()
    with s3_server(folder / "store", folder / "versions") as found:
        found.create_bucket(PLAIN)
        found.create_bucket(VERSIONED)
        found.keep_versions(VERSIONED)
        yield found


@pytest.fixture(scope="module")
def template(workbench: CommitContext, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home without a store, with the person's rows in both halves of orders, in a checkpoint and in a plan."""
    folder = tmp_path_factory.mktemp("template") / "home"
    home = open_home(folder, workbench)
    lab = new_table(home)
    fill(home, lab)
    for half in Half:
        write_checkpoint(lab.halves.layout.half(half), home.table("orders").half(half).version)
    home.close()
    return folder


@pytest.fixture(scope="module")
def template_deleted(template: Path, workbench: CommitContext, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same after its queries no longer show the person's rows."""
    folder = tmp_path_factory.mktemp("deleted") / "home"
    shutil.copytree(template, folder)
    home = open_home(folder, workbench)
    home.backfills.run(home.backfills.plan("orders", BackfillChange(delete=True, where=WHERE)).id, BackfillOptions())
    home.close()
    return folder


@pytest.fixture
def bucket() -> str:
    return PLAIN


@pytest.fixture
def opened(
    bucket: str, server: S3Server, tmp_path: Path, workbench: CommitContext, monkeypatch: pytest.MonkeyPatch
) -> Open:
    """Homes by their names, whose warehouse is in a bucket."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HYBRID_WAREHOUSE", f"s3://{bucket}/{tmp_path.name}")
    return lambda name: open_home(tmp_path / name, workbench)


def pushed(opened: Open, template: Path, tmp_path: Path) -> Hybrid:
    """The home that has the table of a template, and has pushed it to the store."""
    shutil.copytree(template, tmp_path / "a")
    home = opened("a")
    push_warehouse(home.context)
    return home


in_both_buckets = pytest.mark.parametrize("bucket", [PLAIN, VERSIONED])
in_versioned_bucket = pytest.mark.parametrize("bucket", [VERSIONED])


def purge(home: Hybrid) -> PurgeReport:
    return home.table("orders").purge(Erasure(WHERE))


def holding_objects(folder: Path, prefix: str, *, but_statements: bool = False) -> list[str]:
    """The files of the server that hold the person's values: in their bytes, or as Parquet in rows or statistics.

    `but_statements`: not those that only say what was asked for, which a purge leaves to an erasure.
    """
    found = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and prefix in str(path):
            data = path.read_bytes()
            if but_statements:
                lines = (line for line in data.split(b"\n") if not line.startswith(b'{"commitInfo"'))
                data = b"" if path.name == "plan.json" else b"\n".join(lines)
            texts = [data, *([_parquet_text(path)] if data.startswith(b"PAR1") else [])]
            if any(value.encode() in text for value in (NAME, str(ORDER)) for text in texts):
                found.append(str(path.relative_to(folder)))
    return found


def _parquet_text(path: Path) -> bytes:
    file = pq.ParquetFile(path)
    return f"{file.read().to_pylist()} {file.metadata.to_dict()}".encode()


def prefix_of(home: Hybrid) -> str:
    return mirror_of(home.context).url.rpartition("/")[2]


def customers(home: Hybrid) -> list[str]:
    return sorted(one[0] for one in home.query("SELECT customer FROM orders LIMIT 100").rows)


def leave_orphan(home: Hybrid, folder: Path) -> str:
    """An upload of a crashed operation, an hour ago: a file with a row of the person that no log names. Its name."""
    half, name = home.context.layout("orders").half(Half.OFFLINE), "_hy_segment=left/part-0.parquet"
    mirror = mirror_of(home.context)
    mirror.client.upload_file(mirror.key_of(half, name), Path(home.table("orders").half(Half.REALTIME).files[0].path))
    for path in (folder / "store").rglob("part-0.parquet"):
        os.utime(path, (0, 0))
    return name


def clean_log(home: Hybrid) -> None:
    """Remove the mirror's entries below the checkpoint of OFFLINE; a crash has left them on the store."""
    log = home.context.layout("orders").half(Half.OFFLINE) / "_delta_log"
    checkpoint = max(log.glob("*.checkpoint.parquet")).name[:20]
    below = [path for path in log.glob("[0-9]*.json") if path.name[:20] < checkpoint]
    assert any(NAME in path.read_text() for path in below)
    for path in below:
        path.unlink()
    for path in log.parent.glob("_hy_segment=*/*.parquet"):
        os.utime(path, (0, 0))  # a log is cleaned days later


def leave_cut_pull(home: Hybrid) -> list[Path]:
    """What killed processes leave of bringing a half: parts of files, two logs beside its own, entries set aside."""
    half = home.context.layout("orders").half(Half.OFFLINE)
    log, data = half / "_delta_log", next(path for path in half.glob("*/*.parquet") if path.parent.name != "_delta_log")
    checkpoint = next(log.glob("*.checkpoint.parquet"))
    left = [path.with_name(f"{path.name}.0123abcd.part") for path in (data, checkpoint)]
    shutil.copy(data, left[0]), shutil.copy(checkpoint, left[1])
    for name in ("_delta_log.old", "_delta_log.fresh"):
        left.append(Path(shutil.copytree(log, half / name)))
    left.append(log / f".{0:020d}.json.1.foreign")
    left[-1].write_text(json.dumps({"add": {"path": "x", "stats": json.dumps({"minValues": {"customer": NAME}})}}))
    return left


@in_both_buckets
def test_after_an_erasure_no_object_no_version_and_no_follower_has_a_value(
    opened: Open, template: Path, tmp_path: Path, folder: Path
) -> None:
    home, other = pushed(opened, template, tmp_path), opened("b")
    prefix = prefix_of(home)
    follower = WarehouseFollower(other.context)
    follower.look()
    leave_orphan(home, folder)
    clean_log(home)
    assert len(holding_objects(folder, prefix)) > 5 and len(places_of(other.home)) > 3
    certificate = home.erasures.run(home.erasures.begin({"orders": WHERE}).id)
    assert certificate.state == "DONE"
    assert holding_objects(folder, prefix) == [] and places_of(home.home / "warehouse") == []
    soon(follower)
    assert places_of(other.home) == [] and customers(other) == customers(home) == ["a", "a", "a"]
    assert sync_warehouse(home.context).did_something is False
    pull_warehouse(other.context, take_over=True)
    assert customers(other) == ["a", "a", "a"]


def test_a_purge_says_what_it_removed_from_the_store(
    opened: Open, template_deleted: Path, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, other = pushed(opened, template_deleted, tmp_path), opened("b")
    copies = [opened(name) for name in ("c", "d")]
    for copy in (other, *copies):
        pull_warehouse(copy.context)
    prefix, shown = prefix_of(home), customers(home)
    orphan, left = leave_orphan(home, folder), [path for each in (home, other) for path in leave_cut_pull(each)]
    with pytest.raises(ConflictError, match="written by another home"):
        purge(other)
    report = purge(home)
    assert holding_objects(folder, prefix, but_statements=True) == [] and customers(home) == shown
    reading = report.store
    assert reading is not None and reading.deleted == len(report.files) > 2 and reading.brought == 1
    assert any(file.path.endswith(orphan) for file in report.files) and reading.versioning == ""
    assert f"{reading.deleted} objects were deleted" in report.sentence
    assert any("servers that follow the store drop" in words for words in report.outside)
    pull_warehouse(other.context)
    assert customers(other) == shown and not any(path.exists() for path in left)
    assert holding_objects(other.home / "warehouse", "", but_statements=True) == []
    again = purge(home)
    assert not again.committed and again.store is not None and again.store.deleted == 0
    check_no_rows_to_put_back(*copies, monkeypatch)
    check_dropped_copy(copies[1])


def check_no_rows_to_put_back(copy: Hybrid, third: Hybrid, monkeypatch: pytest.MonkeyPatch) -> None:
    """Homes with what was there before the purge take over: a copy that could not drop it does not bring it back."""
    deletion = next(plan.id for plan in copy.backfills.statuses("orders") if plan.buckets_done)
    with monkeypatch.context() as patch:
        patch.setattr(pull, "drop_purged", _away)
        pull_warehouse(copy.context, take_over=True)
    assert holding_objects(copy.home / "warehouse", "", but_statements=True) != []
    with pytest.raises(ConflictError, match=r"no longer retained: data file .* has been removed"):
        copy.backfills.revert(deletion)
    pull_warehouse(third.context, take_over=True)
    assert holding_objects(third.home / "warehouse", "", but_statements=True) == []


def check_dropped_copy(home: Hybrid) -> None:
    """A dropped copy that lacks files of the store cannot be looked at."""
    drop_table(home.context, "orders")
    assert list(copies_with_rows(home.context, "orders", WHERE, False)) == []
    copy = dropped_copies(home.context, "orders")[0]
    key = f"orders/{half_keys(copy)['OFFLINE']}"
    for name in (f"{key}/_hy_segment=left/part-0.parquet", f"{key}.plans/backfill-1/rows/_hy_segment=left/a.parquet"):
        mirror_of(home.context).client.upload(name, b"rows")
    found = list(copies_with_rows(home.context, "orders", WHERE, False))
    assert [(one.path, one.rows) for one in found] == [(copy, None)] and "it lacks 2 files" in found[0].words
    remove_copy(copy)
    assert not [name for name in keys(home.context) if name.startswith(key)]


@in_versioned_bucket
def test_a_purge_that_is_killed_at_each_step_is_run_again(
    opened: Open, template_deleted: Path, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, other = pushed(opened, template_deleted, tmp_path), opened("b")
    follower = WarehouseFollower(other.context)
    follower.look()
    shown = customers(home)
    lab = Lab(home.context.bench, Halves(home.table("orders").spec, home.table("orders").layout), home.home)
    for number, point in enumerate(["purge.rewritten@2", "purge.removed", "purge.versions", "purge.announced"]):
        with ends_at(point, monkeypatch):
            purge(home)
        stream(lab, row(100 + number, 30 * HOUR, offset=NEW + 10 + number))  # commits go on
        for half in (Half.OFFLINE, Half.REALTIME):
            with lab.context.lock(half):
                align(mirror_of(home.context), lab.halves.layout.half(half))
        soon(follower)
        assert len(customers(home)) == len(customers(other)) == len(shown) + number + 1
    assert holding_objects(folder, prefix_of(home), but_statements=True) == [], "but for the record it was done"
    report = purge(home)
    assert report.store is not None and not any(reading.matching for reading in report.after)
    soon(follower)
    assert holding_objects(other.home / "warehouse", "", but_statements=True) == []
    assert customers(other) == customers(home)
    assert sync_warehouse(home.context).did_something is False


POINTS = [(Mirror, "try_put"), (Mirror, "delete"), (purged_store, "step")]


@in_versioned_bucket
@pytest.mark.parametrize("owner, name", POINTS, ids=["rewriting", "deleting", "deleting versions"])
def test_a_purge_that_was_frozen_takes_nothing_from_its_successor(
    opened: Open,
    template_deleted: Path,
    tmp_path: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
) -> None:
    home, other = pushed(opened, template_deleted, tmp_path), opened("b")
    shown = customers(home)

    def meanwhile() -> None:
        pull_warehouse(other.context, take_over=True)
        other.table("orders").pause("no broker here")
        purge(other)

    with frozen_at(monkeypatch, owner, name, meanwhile), pytest.raises(ConflictError, match="written by another home"):
        purge(home)
    assert holding_objects(folder, prefix_of(home), but_statements=True) == []
    third = opened("c")
    pull_warehouse(third.context, take_over=True)
    assert customers(third) == customers(other) == shown
    assert not [finding for finding in findings(third.context) if finding[0] == "ERROR"]
    assert purge_records(third.table("orders").layout) == []


def test_a_store_that_is_away_ends_a_purge_which_says_so_and_continues(
    opened: Open,
    template_deleted: Path,
    tmp_path: Path,
    folder: Path,
    server: S3Server,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    home, other = pushed(opened, template_deleted, tmp_path), opened("b")
    pull_warehouse(other.context)
    shown, mirror = customers(home), mirror_of(home.context)
    mirror.tuning = StoreTuning(patience_s=1.0)
    vars(mirror).pop("client"), vars(mirror).pop("ownership")
    try:
        with frozen_at(monkeypatch, Mirror, "delete", server.process.stop), pytest.raises(StoreError):
            purge(home)
    finally:
        server.process.start()
    record = purge_records(home.table("orders").layout)[0]
    assert "is not complete" in record["sentence"] and record["after"] == [] and customers(home) == shown
    assert not any(reading.matching for reading in purge(home).after)
    assert holding_objects(folder, prefix_of(home), but_statements=True) == [] and customers(home) == shown
    pull_warehouse(other.context, take_over=True)
    logs = holding_objects(other.home, "_delta_log", but_statements=True)
    assert logs == [] and customers(other) == shown, "what was written again is taken over, too"


def _away(*_: Any) -> None:
    raise StoreError("the store is away")
