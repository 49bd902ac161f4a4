"""Whose catalog in a database it is: one home's, and one copy of it, whoever is killed or paused, and when."""

from __future__ import annotations

import errno
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa

import hybrid
from hybrid.catalog import ownership
from hybrid.catalog.catalog import Catalog
from hybrid.catalog.database import DatabaseLimits
from hybrid.catalog.ownership import OWNER_FILE, Owner
from hybrid.cli.main import run
from hybrid.clock import ClockReading
from hybrid.errors import ConflictError, MachineError, UsageError
from hybrid.serve import health
from hybrid.serve.pipeline import Pipeline
from tests.catalog.test_database import TASK, at_once, request
from tests.postgresql import PostgresServer, needs_postgresql, postgres

pytestmark = [needs_postgresql, pytest.mark.process]
__all__ = ["postgres"]

AGED = sa.text("UPDATE roles SET beat_ms = beat_ms - 100000")


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.database()


@pytest.fixture
def first(url: str, home: Path) -> Iterator[Catalog]:
    with closing(Catalog.of_home(home, url)) as catalog:
        yield catalog


def columns(catalog: Catalog, table: str) -> set[str]:
    return {column["name"] for column in sa.inspect(catalog._engine).get_columns(table)}


def taken_over(first: Catalog, url: str, home: Path) -> Catalog:
    """The catalog of a copy of the home, whose own server has given no sign of life for a while."""
    first.serving.beat("pipeline", "ready")
    with first._engine.begin() as connection:
        connection.execute(AGED)
    shutil.copytree(home, home.with_name("copy"))
    return Catalog.of_home(home.with_name("copy"), url)


@pytest.mark.parametrize("has_links", [True, False])
def test_processes_that_open_a_new_home_at_once_read_one_id(
    home: Path, has_links: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.mkdir()
    ids: list[str] = []

    def refused(*_: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    if not has_links:
        monkeypatch.setattr(os, "link", refused)
        ids.append(Owner.of(home).id)
    at_once(8, lambda _: ids.append(Owner.of(home).id))
    assert set(ids) == {(home / OWNER_FILE).read_text()} and len(ids[0]) == 32
    assert [path.name for path in home.iterdir()] == [OWNER_FILE]


@pytest.mark.parametrize("content", ["", "no id"])
def test_a_damaged_id_is_refused(home: Path, url: str, content: str) -> None:
    home.mkdir()
    (home / OWNER_FILE).write_text(content)
    with pytest.raises(MachineError, match=r"catalog\.id holds no id") as caught:
        Catalog.of_home(home, url)
    assert "SELECT folder FROM origin" in str(caught.value.hint)


def test_tables_of_another_application_stay_as_they_are(postgres: PostgresServer, url: str, home: Path) -> None:
    database = url.rpartition("/")[2]
    for kind in ("TABLE roles (name text)", "TABLE origin (name text)", "VIEW runs AS SELECT 1 AS id"):
        postgres.execute(f"CREATE {kind}", database)
        with pytest.raises(UsageError, match=r"has tables of another application: \w+\. Nothing was changed") as caught:
            Catalog.of_home(home, url)
        assert "CREATE DATABASE" in str(caught.value.hint)
        engine = sa.create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
        inspector = sa.inspect(engine)
        names = [*inspector.get_table_names(), *inspector.get_view_names()]
        assert len(names) == 1 and len(inspector.get_columns(names[0])) == 1
        engine.dispose()
        postgres.execute(f"DROP {kind.split()[0]} {names[0]}", database)
    Catalog.of_home(home, url).close()


def test_a_home_that_is_refused_migrates_nothing(first: Catalog, url: str, tmp_path: Path) -> None:
    with first._engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE runs DROP COLUMN dry_run"))
    with pytest.raises(UsageError, match="belongs to another home"):
        Catalog.of_home(tmp_path / "another", url)
    assert "dry_run" not in columns(first, "runs")


def test_a_server_that_was_paused_while_a_copy_took_over_does_no_more_work(
    first: Catalog, url: str, home: Path
) -> None:
    for number in (1, 2):
        first.runs.enqueue(request(number))
    assert first.runs.claim() is not None
    with closing(taken_over(first, url, home)) as copy:
        for write in (
            lambda: first.runs.claim(),
            lambda: first.runs.take_up_fallen(),
            lambda: first.runs.enqueue(request(3)),
            lambda: first.runs.tell("run_1", "Merging."),
            lambda: first.runs.finish("run_1", "DONE", "Moved."),
            lambda: first.serving.beat("pipeline", "ready"),
            lambda: first.serving.pause("orders"),
            lambda: first.require_owner(),
        ):
            with pytest.raises(MachineError, match="belongs to another copy of this home by now") as caught:
                write()
        assert "Stop one of the two servers" in str(caught.value.hint)
        assert {run.id: run.state for run in first.runs.list()} == {"run_1": "RUNNING", "run_2": "QUEUED"}
        copy.require_owner()
        assert copy.serving.role("pipeline") is None
        assert [run.id for run in copy.runs.take_up_fallen()] == ["run_1"] and copy.runs.claim() is not None
        copy.serving.beat("pipeline", "ready")
    with pytest.raises(ConflictError, match=r"A server of .*/copy used the catalog .* \d s ago"):
        Catalog.of_home(home, url)


def test_who_takes_over_awaits_what_is_being_written(first: Catalog, url: str, home: Path) -> None:
    first.runs.enqueue(request(1))
    shutil.copytree(home, home.with_name("copy"))
    opened: list[Catalog] = []
    with first._engine.connect() as connection:
        connection.execute(sa.text("UPDATE runs SET state = 'RUNNING', verb = NULL"))
        thread = threading.Thread(target=lambda: opened.append(Catalog.of_home(home.with_name("copy"), url)))
        thread.start()
        thread.join(0.5)
        assert thread.is_alive()
        connection.commit()
    thread.join()
    with closing(opened[0]) as copy:
        assert [run.state for run in copy.runs.list()] == ["INTERRUPTED"], "it saw the run of the other one's command"


def test_the_server_of_a_lost_catalog_says_so(url: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HYBRID_CATALOG", url)
    here = hybrid.connect(home)
    pipeline = Pipeline(here, threading.Event())
    here.context.catalog.runs.enqueue(request(1))
    with closing(taken_over(here.context.catalog, url, home)) as copy:
        assert not pipeline._start_waiting() and pipeline._state == "The queue cannot be read: MachineError"
        context = SimpleNamespace(home=here)
        check = health._checked("catalog", context, health._catalog)  # type: ignore[arg-type]
        assert check["ok"] is False and "another copy of this home" in str(check["detail"])
        assert copy.runs.queue().length == 1
    pipeline._writes.close()
    here.close()


def test_a_person_may_write(first: Catalog, postgres: PostgresServer, url: str, home: Path) -> None:
    first.runs.enqueue(request(1))
    postgres.execute("UPDATE runs SET state = 'DONE'", url.rpartition("/")[2])
    assert [run.state for run in first.runs.list()] == ["DONE"]


def test_containers_that_mount_a_home_share_its_catalog(
    first: Catalog, url: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first.serving.beat("pipeline", "ready")
    first.runs.enqueue(request(1))
    monkeypatch.setattr(ownership.socket, "gethostname", lambda: "a-new-container")
    other_path = home.with_name("mounted")
    other_path.symlink_to(home)
    with closing(Catalog.of_home(other_path, url)) as catalog:
        assert catalog.serving.role("pipeline") is not None and catalog.runs.claim() is not None
        first.runs.finish("run_1", "DONE", "Moved.")


def test_the_home_takes_its_own_catalog_over_after_a_restart_of_the_machine(
    first: Catalog, url: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first.serving.beat("pipeline", "ready")
    monkeypatch.setattr(ownership, "read_clock", lambda: ClockReading(0, 0, "another-boot"))
    with pytest.raises(ConflictError, match="or the machine was started again"):
        Catalog.of_home(home, url)
    with first._engine.begin() as connection:
        connection.execute(AGED)
    Catalog.of_home(home, url).close()


def test_the_check_of_an_earlier_version_is_replaced_and_this_one_stays(first: Catalog, url: str, home: Path) -> None:
    def written() -> object:
        with first._engine.connect() as connection:
            return connection.exec_driver_sql(
                "SELECT xmin::text FROM pg_proc WHERE proname = 'hybrid_catalog_written'"
            ).scalar()

    before = written()
    Catalog.of_home(home, url).close()
    assert written() == before
    with first._engine.begin() as connection:
        connection.exec_driver_sql(
            "CREATE OR REPLACE FUNCTION hybrid_catalog_written() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN RETURN NULL; END $$"
        )
    Catalog.of_home(home, url).close()
    with closing(taken_over(first, url, home)), pytest.raises(MachineError, match="another copy"):
        first.runs.enqueue(request(1))


class Killed(BaseException):
    pass


def given_file(home: Path) -> None:
    with closing(Catalog.of_home(home)) as old, old.runs.recorded("run_1", "orders", TASK) as outcome:
        outcome.ended("Moved.", did_something=True)


@pytest.mark.parametrize("is_committed", [False, True])
def test_a_process_that_is_killed_while_a_file_moves(
    url: str, home: Path, monkeypatch: pytest.MonkeyPatch, is_committed: bool
) -> None:
    given_file(home)
    real = ownership.take_in

    def kill(*arguments: object) -> None:
        if len(arguments) == 3:
            real(*arguments)  # type: ignore[arg-type]
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(ownership, "remove_taken_in" if is_committed else "take_in", kill)
        with pytest.raises(Killed):
            Catalog.of_home(home, url)
    assert (home / "catalog.db").exists()
    with closing(Catalog.of_home(home, url)) as catalog:
        assert [run.id for run in catalog.runs.list()] == ["run_1"]
        assert catalog.runs.ended_counts() == {("orders", TASK, "DONE"): 1}
    assert not list(home.glob("catalog.db*"))


def test_a_file_that_the_home_used_again_stays_and_is_reported(
    url: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given_file(home)
    with monkeypatch.context() as patched:
        patched.setattr(ownership, "remove_taken_in", lambda *_: None)
        Catalog.of_home(home, url).close()
    with closing(Catalog.of_home(home)) as again:  # without the setting
        again.runs.enqueue(request(2))
    monkeypatch.setenv("HYBRID_CATALOG", url)
    assert run(["--home", str(home), "doctor"]) == 3
    assert "catalog.db is not used, and no purge cleans it" in capsys.readouterr().out
    with closing(Catalog.of_home(home)) as again:
        assert len(again.runs.list()) == 2


def test_a_damaged_file_is_named_and_set_aside(
    url: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir(mode=0o700)
    (home / "catalog.db").write_text("no database at all\n" * 1000)
    with pytest.raises(MachineError, match=r"catalog\.db is damaged") as caught:
        Catalog.of_home(home, url)
    assert caught.value.hint == "hybrid doctor --repair"
    monkeypatch.setenv("HYBRID_CATALOG", url)
    assert run(["--home", str(home), "doctor"]) == 3
    assert "catalog.db is damaged" in capsys.readouterr().out
    run(["--home", str(home), "doctor", "--repair"])
    assert "is kept as catalog.db.damaged-" in capsys.readouterr().out
    assert not (home / "catalog.db").exists() and run(["--home", str(home), "task", "list"]) == 0


def test_a_catalog_that_is_larger_than_one_insertion_moves(url: str, home: Path) -> None:
    with closing(Catalog.of_home(home)) as old:
        for number in range(250):
            old.runs.enqueue(request(number))
    with closing(Catalog.of_home(home, url, DatabaseLimits())) as catalog:
        assert catalog.runs.queue().length == 250
