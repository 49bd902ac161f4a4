"""Backups of small homes, without a JVM: what is copied, found damaged, restored and deleted."""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.catalog.ownership import OWNER_FILE
from hybrid.cli.main import run
from hybrid.config.settings import load_settings
from hybrid.config.table_config import Half
from hybrid.doctor.examine import examine
from hybrid.doctor.findings import Severity
from hybrid.errors import ConflictError, DataError, MachineError, NotFoundError, UsageError
from hybrid.home.accounts import Accounts, Right
from hybrid.operations.backups import backup_store
from hybrid.operations.backups.backup_manifest import FORMAT, BackupManifest, _sealed, _tail
from hybrid.operations.backups.backup_store import BackupStore
from tests.operations.backups.restored_homes import SQL, opened, restored
from tests.query.halves import KEY, Halves
from tests.serve.app import CONSUMING, row


def objects(store: Path) -> set[Path]:
    return {path for path in (store / "objects").rglob("*") if path.is_file()}


@pytest.mark.slow
def test_a_restored_home_answers_the_same(here: Hybrid, halves: Halves, store: Path, tmp_path: Path) -> None:
    report = here.backups.create(store)
    before = here.query(SQL)
    halves.commit_realtime([row(5, 5000, 4, CONSUMING)], offsets={KEY: 5})
    new = restored(here, store, tmp_path / "new")
    assert new.query(SQL).rows == before.rows and len(before.rows) == 4
    revision = report.tables["orders"]
    for hy in (here, new):  # the original goes on, and both know the backup's revision
        assert hy.query(SQL, as_of=revision).rows == before.rows
    assert [run.type for run in here.runs()] == ["backup"] and "Backed up 1 table as" in str(here.runs()[0].result)
    assert [finding for finding in examine(new, "orders") if finding.severity is Severity.ERROR] == []
    state = new.table("orders").half(Half.REALTIME).realtime
    assert state.offsets == {KEY: 4} and state.consuming[KEY].name == CONSUMING
    halves_of_new = Halves(new.spec("orders"), new.context.layout("orders"), state)
    halves_of_new.commit_realtime([row(6, 6000, 4, CONSUMING)], offsets={KEY: 5})
    assert len(new.query(SQL).rows) == 5 and [found[0] for found in here.query(SQL).rows] == [1, 2, 3, 4, 5]
    new.close()


@pytest.mark.slow
def test_a_second_backup_copies_only_new_files(here: Hybrid, halves: Halves, store: Path) -> None:
    first = here.backups.create(store)
    assert first.files_new == first.files == len(objects(store))
    before = {path: path.stat().st_mtime_ns for path in objects(store)}
    again = here.backups.create(store)
    assert again.files_new == 1  # the catalog, which has the run of the first one
    halves.commit_realtime([row(5, 5000, 4, CONSUMING)], offsets={KEY: 5})
    third = here.backups.create(store)
    assert third.files_new == 3 and third.files == first.files + 2  # a data file, its log entry, the catalog
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert [found.id for found in here.backups.list(store)] == [third.id, again.id, first.id]


@pytest.mark.slow
def test_files_are_not_read_again(here: Hybrid, halves: Halves, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here.backups.create(store)
    read = list[str]()
    put = BackupStore.put_file
    monkeypatch.setattr(BackupStore, "put_file", lambda self, path: (read.append(path.name), put(self, path))[1])
    halves.commit_realtime([row(5, 5000, 4, CONSUMING)], offsets={KEY: 5})
    here.backups.create(store)
    entries = [name for name in read if not name.endswith(".parquet")]
    assert len(read) == 2 and "00000000000000000002.json" in entries
    # A purge rewrites a log entry, which keeps its time and here its size. An object that was lost is copied once more.
    entry = here.context.layout("orders").half(Half.REALTIME) / "_delta_log" / f"{1:020d}.json"
    part, times = entry.with_suffix(".part"), entry.stat()
    part.write_bytes(entry.read_bytes())
    os.utime(part, ns=(times.st_atime_ns, times.st_mtime_ns))
    part.rename(entry)
    lost = next(path for path in objects(store) if path.stat().st_size == entry.stat().st_size)
    lost.unlink()
    read.clear()
    here.backups.create(store)
    assert entry.name in read and here.backups.verify(store).sound


@pytest.mark.slow
def test_a_backup_of_one_table_does_not_make_the_next_one_read_all(
    here: Hybrid, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = here.settings.warehouse
    shutil.copytree(root / "orders", root / "others")
    text = (root / "others" / "definition.json").read_text()
    (root / "others" / "definition.json").write_text(text.replace('"orders"', '"others"'))
    here.backups.create(store)
    here.backups.create(store, ["others"])
    read = list[Path]()
    put = BackupStore.put_file
    monkeypatch.setattr(BackupStore, "put_file", lambda self, path: (read.append(path), put(self, path))[1])
    here.backups.create(store)
    assert [path for path in read if path.is_relative_to(root)] == []


KINDS: dict[str, Callable[[str], bool]] = {
    "data": lambda path: path.endswith(".parquet") and "_delta_log" not in path,
    "log entry": lambda path: "_delta_log" in path,
    "definition": lambda path: path.endswith("definition.json"),
    "schema": lambda path: "/.schemas/" in path,
    "accounts": lambda path: path == "access.json",
    "settings": lambda path: path == "hybrid.toml",
    "catalog": lambda path: path == "catalog.db",
    "archive": lambda path: path.endswith(".acts"),
    "plan": lambda path: "/plans/" in path,
}


@pytest.fixture
def full(here: Hybrid, store: Path) -> str:
    """The id of a backup with a file of each kind."""
    root = here.context.layout("orders").root
    Accounts(here.home).add("ada", Right.READ)
    (here.home / "hybrid.toml").write_text("ingest_interval_s = 2\n")
    (here.home / "warehouse" / ".schemas").mkdir()
    (here.home / "warehouse" / ".schemas" / "orders.json").write_text("{}")
    (root / "OFFLINE.acts").write_text('{"table_id": "x", "version": 0, "act": {}}')
    (root / "plans" / "p").mkdir(parents=True)
    (root / "plans" / "p" / "plan.json").write_text('{"id": "p"}')
    for left_out in ("staging/a", "plans/p/running", ".hidden", "OFFLINE.lock"):
        (root / left_out).parent.mkdir(exist_ok=True)
        (root / left_out).touch()
    return here.backups.create(store).id


@pytest.mark.slow
def test_damage_to_any_file_is_found(here: Hybrid, full: str, store: Path, tmp_path: Path) -> None:
    assert here.backups.verify(store).sound and here.backups.verify(store, full).findings == ()
    manifest = BackupStore(store).read(full)
    assert not [file.path for file in manifest.files if "staging" in file.path or "running" in file.path]
    for kind, matches in KINDS.items():
        file = next(file for file in manifest.files if matches(file.path))
        path = BackupStore(store).object_path(file.sha256)
        whole = path.read_bytes()
        path.write_bytes(bytes([whole[0] ^ 1]) + whole[1:])
        for report in (here.backups.verify(store), here.backups.verify(store, full)):
            assert not report.sound, kind
            assert [(found.kind, found.file, found.backups) for found in report.findings] == [
                ("DAMAGED", file.path, (full,))
            ]
        with pytest.raises(DataError, match="is damaged"):
            opened(tmp_path / "new").backups.restore(store)
        assert not (tmp_path / "new").exists()
        path.unlink()
        assert [found.kind for found in here.backups.verify(store).findings] == ["MISSING"]
        path.write_bytes(whole)
    for name in (f"backups/{full}.json", "hybrid-backup.json"):
        whole = (store / name).read_bytes()
        for place in range(0, len(whole), max(1, len(whole) // 200)):
            (store / name).write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
            report = here.backups.verify(store)
            assert not report.sound and report.findings[0].path == name
        (store / name).write_bytes(whole)
    (store / "objects" / "00").mkdir(exist_ok=True)
    for name in (f"objects/00/{'0' * 64}", "objects/a", "parts/a", "backups/a.txt", "else"):
        (store / name).touch()
        report = here.backups.verify(store)
        assert report.sound and [(found.kind, found.path) for found in report.findings] == [("SURPLUS", name)]
        (store / name).unlink()


@pytest.mark.slow
def test_what_cannot_be_read_is_damaged(
    here: Hybrid, full: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = BackupStore(store)
    files = made.read(full).files
    folder, unreadable = (made.object_path(files[at].sha256) for at in (0, -1))
    folder.unlink()
    folder.mkdir()
    opens = Path.open

    def bad_sector(self: Path, *args: Any, **options: Any) -> Any:
        if self in {unreadable, store / "backups" / "bad.json"}:
            raise OSError(errno.EIO, "Input/output error")
        return opens(self, *args, **options)

    (store / "backups" / "bad.json").write_text("{}")
    (store / "backups" / "a-folder.json").mkdir()
    monkeypatch.setattr(Path, "open", bad_sector)
    report = here.backups.verify(store)
    assert {(found.kind, found.path) for found in report.findings} == {
        ("DAMAGED", str(path.relative_to(store)))
        for path in (folder, unreadable, store / "backups" / "bad.json", store / "backups" / "a-folder.json")
    }
    assert not report.sound and [found.state for found in here.backups.list(store)] == ["DAMAGED", "DAMAGED", "WHOLE"]
    with pytest.raises((DataError, OSError)):
        opened(tmp_path / "new").backups.restore(store, full)
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_the_command_line(here: Hybrid, full: str, store: Path, tmp_path: Path, capsys: Any) -> None:
    home, new = ["--home", str(here.home)], tmp_path / "new"
    (here.home / "hybrid.toml").write_text('lock_timeout_s = 5\n[spark]\nhadoop.fs.s3a.secret.key = "s"\n')
    assert run(["backup", "create", str(store), *home, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert made["tables"].keys() == {"orders"} and "hybrid.toml: hadoop.fs.s3a.secret.key" in made["left_out"]
    assert run(["backup", "list", str(store), "--json"]) == 0
    assert [found["id"] for found in json.loads(capsys.readouterr().out)] == [made["id"], full]
    assert run(["backup", "verify", str(store), made["id"]]) == 0
    assert run(["backup", "restore", str(store)]) == 2  # the new home is named, always
    assert run(["backup", "restore", str(store), *home]) == 4
    capsys.readouterr()
    assert run(["backup", "restore", str(store), "--home", str(new)]) == 0
    said = capsys.readouterr().err
    assert "Restored 1 table of backup" in said and "Table 'orders': " in said  # Kafka does not answer
    assert (new / "hybrid.toml").read_text() == "lock_timeout_s = 5\n[spark]\n"
    assert Accounts(new).list() == Accounts(here.home).list()
    assert (new / "access.json").stat().st_mode & 0o777 == 0o600 and new.stat().st_mode & 0o777 == 0o700
    assert run(["--home", str(new), "query", "select count(*) from orders", "--json"]) == 0
    assert run(["backup", "delete", str(store), full]) == 2  # nobody can be asked
    assert run(["backup", "delete", str(store), full, "--yes"]) == 0
    assert run(["backup", "delete", str(store), full, "--yes"]) == 1
    assert run(["backup", "verify", str(store)]) == 0
    next(iter(objects(store))).unlink()
    assert run(["backup", "verify", str(store)]) == 3


@pytest.mark.slow
def test_a_deleted_backup_takes_only_its_own_files(here: Hybrid, halves: Halves, store: Path, tmp_path: Path) -> None:
    first = here.backups.create(store).id
    halves.commit_realtime([row(5, 5000, 4, CONSUMING)], offsets={KEY: 5})
    second = here.backups.create(store).id
    (store / "parts" / "left").touch()
    report = here.backups.delete(store, first)
    assert report.files == 2 and f"Deleted backup {first}: 2 files" in report.sentence  # its catalog, and what was left
    assert here.backups.verify(store).findings == ()
    third = here.backups.create(store).id
    (store / "backups" / f"{second}.json").write_text("{}")
    with pytest.raises(ConflictError, match=f"no backup needs stay: the manifest of '{second}' is damaged"):
        here.backups.delete(store, third)
    count = len(objects(store))
    assert count > 3 and here.backups.list(store)[0].state == "DAMAGED"
    here.backups.delete(store, second)
    assert objects(store) == set()
    with pytest.raises(NotFoundError, match="holds no backup"):
        opened(tmp_path / "new").backups.restore(store)


@pytest.mark.slow
def test_what_no_backup_needs_is_removed(
    here: Hybrid, store: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """Objects of a killed backup may hold erased rows: the next backup removes them, or a deletion of its own."""

    def surplus() -> list[str]:
        return [found.kind for found in here.backups.verify(store).findings]

    def killed() -> None:
        raise KeyboardInterrupt

    def cut_short() -> None:
        (here.home / "access.json").write_text(f'{{"accounts": [], "times": {len(objects(store))}}}')
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(BackupStore, "publish", lambda *_: killed())
            here.backups.create(store)
        (here.home / "access.json").unlink()

    here.backups.create(store)
    cut_short()
    assert "SURPLUS" in surplus()
    assert run(["backup", "list", str(store)]) == 0
    assert f"hybrid backup delete {store} --surplus" in capsys.readouterr().err
    with BackupStore(store).reading():  # a reader may be at work with any object: nothing is removed
        here.backups.create(store)
        assert "SURPLUS" in surplus()
    (store / "backups" / "bad.json").write_text("{}")
    here.backups.create(store)
    with pytest.raises(ConflictError, match="the manifest of 'bad' is damaged"):
        here.backups.delete_surplus(store)
    (store / "backups" / "bad.json").unlink()
    assert "SURPLUS" in surplus()
    report = here.backups.delete_surplus(store)
    assert report.files > 0 and report.id is None and surplus() == []
    cut_short()
    assert "SURPLUS" in surplus()
    here.backups.create(store)
    assert surplus() == []
    cut_short()
    assert run(["backup", "delete", str(store)]) == 2 == run(["backup", "delete", str(store), "x", "--surplus"])
    assert run(["backup", "delete", str(store), "--surplus"]) == 0 and surplus() == []
    capsys.readouterr()
    assert run(["backup", "list", str(store)]) == 0
    assert "--surplus" not in capsys.readouterr().err


@pytest.mark.slow
def test_a_table_without_a_definition_is_missed(here: Hybrid, store: Path) -> None:
    root = here.settings.warehouse
    shutil.copytree(root / "orders", root / "others")
    (root / "others" / "definition.json").rename(root / "others" / "definition.json.damaged-1")
    with pytest.raises(DataError, match="definition of table 'others' is missing"):
        here.backups.create(store)
    assert here.backups.list(store) == []
    assert here.backups.create(store, ["orders"]).tables.keys() == {"orders"}
    shutil.rmtree(root / "others" / "OFFLINE")
    log = root / "others" / "REALTIME" / "_delta_log"
    first = (log / f"{0:020d}.json").read_text()
    (log / f"{0:020d}.json").write_text("{")  # nor can it be read
    with pytest.raises(DataError, match="definition of table 'others' is missing"):
        here.backups.create(store)
    (log / f"{0:020d}.json").write_text(first)
    (log / f"{1:020d}.json").unlink()  # as a creation in progress leaves it
    assert here.backups.create(store).tables.keys() == {"orders"}


@pytest.mark.slow
def test_files_with_odd_names_stand_in_nobodys_way(here: Hybrid, store: Path, tmp_path: Path, capsys: Any) -> None:
    made = here.backups.create(store).id
    text = (store / "backups" / f"{made}.json").read_text()
    odd = ["._x", f"{made} (1)"]
    for name in odd:
        (store / "backups" / f"{name}.json").write_text(text)
    (store / "parts").rmdir()  # as tools that copy no empty folders leave it
    for name in odd:
        with pytest.raises(DataError, match="is not the name of a manifest"):
            here.backups.verify(store, name)
    report = here.backups.verify(store)
    assert report.sound and {found.path for found in report.findings} == {f"backups/{name}.json" for name in odd}
    second = here.backups.create(store).id
    assert [found.id for found in here.backups.list(store)] == [second, made]
    assert run(["backup", "list", str(store)]) == 0
    said = capsys.readouterr().err
    assert all(f"{name}.json is no backup" in said for name in odd)
    restored(here, store, tmp_path / "new").close()
    here.backups.delete(store, made)
    assert here.backups.verify(store, second).sound


@pytest.mark.slow
def test_which_backup_is_restored_by_default(here: Hybrid, store: Path, tmp_path: Path) -> None:
    made = BackupStore(store)

    def restore(number: int, **options: Any) -> Any:
        new = opened(tmp_path / f"new{number}")
        report = new.backups.restore(store, **options)
        new.close()
        return report

    part = here.backups.create(store, ["orders"])
    only = restore(0)
    assert only.id == part.id and "named tables only (PARTIAL)" in "".join(only.left_out)
    whole = here.backups.create(store)
    later = here.backups.create(store, ["orders"])
    chosen = restore(1)
    assert chosen.id == whole.id and "PARTIAL" not in "".join(chosen.left_out)
    assert "PARTIAL" in "".join(restore(2, backup=later.id).left_out)
    (store / "backups" / "9.json").write_text("{}")
    with pytest.raises(DataError, match=f"is damaged.* newer than '{whole.id}'"):
        restore(3)
    (store / "backups" / "9.json").rename(store / "backups" / "1.json")
    assert restore(4).id == whole.id
    other = replace(made.read(whole.id), id="other", home="/srv/other")
    (store / "backups" / "other.json").write_text(other.to_text())
    with pytest.raises(ConflictError, match="holds backups of 2 homes") as refused:
        restore(5)
    assert refused.value.hint == f"Name its ID: hybrid backup list {store}"
    assert restore(6, backup=whole.id).id == whole.id


@pytest.mark.slow
def test_homes_in_the_same_folder_of_two_machines(here: Hybrid, store: Path, tmp_path: Path) -> None:
    """Their folders are the same, their machines are not; a backup of a version without machines counts for either.

    A restored home has another id, on the same machine.
    """
    made = BackupStore(store)
    first = here.backups.create(store).id
    (here.home / OWNER_FILE).write_text("0" * 32)
    second = replace(made.read(first), id=f"{first}2", home_id="0" * 32)
    (store / "backups" / f"{second.id}.json").write_text(second.to_text())
    assert made.newest_whole() == second
    second = replace(second, host="renamed", home_id=made.read(first).home_id)
    (store / "backups" / f"{second.id}.json").write_text(second.to_text())
    assert made.newest_whole() == second, "a container that was made anew"
    second = replace(second, host="other", home_id="0" * 32)
    old = replace(made.read(first), id=f"{first}1", home_id="", host="")
    (store / "backups" / f"{second.id}.json").write_text(second.to_text())
    with pytest.raises(ConflictError, match=f"backups of 2 homes .*other:{here.home}"):
        made.newest_whole()
    (store / "backups" / f"{first}.json").unlink()
    (store / "backups" / f"{old.id}.json").write_text(old.to_text())
    assert made.newest_whole() == second
    body = old.to_text()[len('{"backup":') : -len(_tail(""))]
    body = body.replace(f'"format":{FORMAT}', '"format":1').replace('"home_id":"",', "").replace('"host":"",', "")
    assert BackupManifest.from_text(_sealed(body), "x") == old


@pytest.mark.slow
def test_tables_of_other_query_servers_are_named(here: Hybrid, store: Path, tmp_path: Path) -> None:
    """A server with pinned tables has only its own. Its backup is WHOLE: else an older one would be restored."""
    remote = here.settings.warehouse / ".remote"
    remote.mkdir()
    (remote / "events.json").write_text("{}")
    report = here.backups.create(store)
    assert [summary.state for summary in here.backups.list(store)] == ["WHOLE"]
    assert any("1 table that other query servers hold (events)" in words for words in report.left_out)
    assert list(here.backups.create(store, ["orders"]).left_out) == [w for w in report.left_out if "events" not in w]


@pytest.mark.slow
def test_wrong_places_are_refused(here: Hybrid, store: Path, tmp_path: Path) -> None:
    for place in (here.home, here.home / "b", here.home.parent):
        with pytest.raises(UsageError, match="contain each other"):
            here.backups.create(place)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(UsageError, match=r"holds other files \(file\)"):
        here.backups.create(tmp_path / "other")
    with pytest.raises(NotFoundError, match="is no backup directory"):
        here.backups.verify(tmp_path / "other")
    with pytest.raises(NotFoundError, match="does not exist"):
        here.backups.create(tmp_path / "no" / "such")
    with pytest.raises(NotFoundError, match=r"Table 'order' does not exist. Did you mean 'orders'"):
        here.backups.create(store, ["order"])
    assert not store.exists()
    made = here.backups.create(store).id
    for backup in ("../../x", "nope", made[:-1]):
        with pytest.raises(NotFoundError, match="Backup"):
            here.backups.verify(store, backup)
    with pytest.raises(ConflictError, match="is not empty"):
        opened(tmp_path / "other").backups.restore(store)
    with pytest.raises(NotFoundError, match="Table 'x'"):
        opened(tmp_path / "new").backups.restore(store, tables=["x"])
    with BackupStore(store).writing(1), pytest.raises(ConflictError, match="Another process writes"):
        vars(here.settings)["values"] = load_settings(home=here.home, flags={"lock_timeout_s": "0.1"}).values
        here.backups.create(store)


def test_a_manifest_from_elsewhere_writes_nothing_outside(here: Hybrid, store: Path, tmp_path: Path) -> None:
    made = BackupStore(store)
    here.backups.create(store)
    manifest = made.newest()
    for path in ("../evil", "/evil", "a/../../evil"):
        file = manifest.files[0]
        bad = replace(manifest, id="bad", files=(replace(file, path=path),))
        (store / "backups" / "bad.json").write_text(bad.to_text())
        with pytest.raises(DataError, match="outside of the home"):
            opened(tmp_path / "new").backups.restore(store, "bad")
    newer = manifest.to_text()[len('{"backup":') : -len(_tail(""))].replace(f'"format":{FORMAT}', '"format":9')
    with pytest.raises(DataError, match="has format 9"):
        BackupManifest.from_text(_sealed(newer), "x")
    with pytest.raises(DataError, match="is no manifest of a backup"):
        BackupManifest.from_text(_sealed("[]"), "x")


@pytest.mark.slow
def test_a_full_disk_is_named(here: Hybrid, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = here.backups.create(store).id

    def full(path: Path) -> Any:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(backup_store, "_open_private", full)
    for work in (lambda: here.backups.create(store), lambda: opened(tmp_path / "new").backups.restore(store)):
        with pytest.raises(MachineError, match=r"The disk of .* is full"):
            work()
    monkeypatch.undo()
    assert not (tmp_path / "new").exists()
    assert [found.id for found in here.backups.list(store)] == [good] and here.backups.verify(store).sound


def test_a_deletion_waits_for_readers(here: Hybrid, store: Path) -> None:
    made = here.backups.create(store).id
    deletion = threading.Thread(target=here.backups.delete, args=(store, made))
    with BackupStore(store).reading(), BackupStore(store).reading():
        deletion.start()
        deletion.join(0.2)
        assert deletion.is_alive() and len(here.backups.list(store)) == 1
    deletion.join()
    assert here.backups.list(store) == []
