"""A catalog in PostgreSQL: what it shares with SQLite's, whose it is, what a home brings along, and when it is gone."""

from __future__ import annotations

import shutil
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
import sqlalchemy as sa

from hybrid.catalog import schema
from hybrid.catalog.catalog import Catalog
from hybrid.catalog.database import DatabaseLimits, database_url, shown_url
from hybrid.catalog.ownership import OWNER_FILE
from hybrid.catalog.run_record import RunRequest
from hybrid.catalog.write_watch import WriteWatch
from hybrid.cli.main import run
from hybrid.errors import ConflictError, MachineError, SpecError, UsageError
from tests.postgresql import PostgresServer, needs_postgresql, postgres

pytestmark = [needs_postgresql, pytest.mark.process]
__all__ = ["postgres"]

TASK = "RealtimeToOfflineSegmentsTask"


def request(number: int, *, only_one: bool = False) -> RunRequest:
    return RunRequest(f"run_{number}", "orders", TASK, "move", {"table": "orders"}, "http", only_one=only_one)


def at_once(number: int, work: Callable[[int], None]) -> None:
    """Calls `work(0)` to `work(number - 1)` in threads that start together; raises the first error."""
    gate, errors = threading.Barrier(number), list[BaseException]()

    def call(index: int) -> None:
        gate.wait()
        try:
            work(index)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=call, args=(index,)) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def becomes_new(watch: WriteWatch, within_s: float = 10.0) -> bool:
    """Whether a watch is notified. A notification comes a moment after the commit."""
    end = time.monotonic() + within_s
    while not watch.has_new():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.database()


@pytest.fixture
def catalogs(url: str, home: Path) -> Iterator[tuple[Catalog, Catalog]]:
    """The catalog of a home as two processes have it open."""
    with closing(Catalog.of_home(home, url)) as first, closing(Catalog.of_home(home, url)) as second:
        yield first, second


def test_a_run_from_the_queue_to_its_end(catalogs: tuple[Catalog, Catalog]) -> None:
    runs, others = (catalog.runs for catalog in catalogs)
    assert runs.enqueue(request(1, only_one=True)) is not None
    assert others.enqueue(request(2, only_one=True)) is None
    claimed = others.claim()
    assert claimed is not None and (claimed.id, claimed.state, claimed.attempts) == ("run_1", "RUNNING", 1)
    assert runs.claim() is None
    assert [run.id for run in runs.take_up_fallen()] == ["run_1"]
    assert others.claim() is not None
    others.tell("run_1", "Merging.")
    others.finish("run_1", "DONE", "Moved 7 rows.", {"rows": 7})
    done = runs.find("run_1")
    assert done is not None and (done.state, done.report, done.progress) == ("DONE", {"rows": 7}, "Merging.")
    assert runs.counts() == runs.ended_counts() == {("orders", TASK, "DONE"): 1}
    assert runs.queue().length == 0 and runs.remove_old(2**42) == 0, "the newest stays"


def test_each_run_is_claimed_once_and_each_end_counts_once(catalogs: tuple[Catalog, Catalog]) -> None:
    for number in range(40):
        catalogs[0].runs.enqueue(request(number))
    claimed: list[str] = []

    def work(index: int) -> None:
        runs, misses = catalogs[index % 2].runs, 0
        while misses < 20:  # another one was faster
            claim = runs.claim()
            if claim is None:
                misses += 1
                continue
            claimed.append(claim.id)
            runs.finish(claim.id, "DONE", "Moved.")

    at_once(6, work)
    assert sorted(claimed) == sorted(f"run_{number}" for number in range(40))
    assert catalogs[1].runs.ended_counts() == {("orders", TASK, "DONE"): 40}


def test_states_that_are_written_at_once(catalogs: tuple[Catalog, Catalog]) -> None:
    at_once(8, lambda index: catalogs[index % 2].serving.beat("query", f"ready {index}"))
    role = catalogs[0].serving.role("query")
    assert role is not None and role.state.startswith("ready ")
    catalogs[0].serving.note_ingestion("orders", "STOPPED", "a\x00b", 2**40)
    assert catalogs[1].serving.ingestions()["orders"].detail == "a\N{REPLACEMENT CHARACTER}b"
    catalogs[0].serving.confirm_ingestions({"orders": 2**41})
    assert catalogs[1].serving.ingestions()["orders"].at_ms == 2**41
    catalogs[0].connectors.pause("orders", "kafka", {"orders-0": 3})
    assert catalogs[1].connectors.of("orders")["kafka"].pause_offsets == {"orders-0": 3}
    assert catalogs[0].mask(lambda column, text: "***") == 1 and catalogs[0].forget_journal()


def test_a_watch_is_notified_of_what_others_write(catalogs: tuple[Catalog, Catalog]) -> None:
    watch = catalogs[0].write_watch()
    assert watch.has_new(), "nobody knows what was before"
    assert not watch.has_new()
    assert catalogs[1].runs.claim() is None
    assert not watch.has_new(), "a look is no change"
    catalogs[1].runs.enqueue(request(1))
    assert becomes_new(watch)
    assert not watch.has_new()
    watch.close()
    assert watch.has_new(), "begun again"
    watch.close()


def test_processes_that_make_the_catalog_at_once(url: str, home: Path) -> None:
    at_once(6, lambda index: Catalog.of_home(home, url).close())


def test_a_catalog_of_an_earlier_version_is_brought_up_to_date(url: str, home: Path) -> None:
    with closing(Catalog.of_home(home, url)) as catalog, catalog._engine.begin() as connection:
        for statement in ("DROP INDEX runs_only_one", "ALTER TABLE runs DROP COLUMN dry_run", "DROP TABLE pauses"):
            connection.execute(sa.text(statement))
    with closing(Catalog.of_home(home, url)) as catalog:
        assert catalog.runs.enqueue(request(1, only_one=True)) is not None
        assert catalog.runs.enqueue(request(2, only_one=True)) is None
        catalog.serving.pause("orders", "why")
        assert catalog.serving.pauses()["orders"].comment == "why"


def test_what_sqlite_held_comes_along_and_its_file_goes(url: str, home: Path) -> None:
    with closing(Catalog.of_home(home)) as old, old.runs.recorded("run_1", "orders", TASK) as outcome:
        old.serving.pause("orders", "for now")
        outcome.ended("Moved.", did_something=True)
    with closing(Catalog.of_home(home, url)) as catalog:
        assert [(run.id, run.state, run.result) for run in catalog.runs.list()] == [("run_1", "DONE", "Moved.")]
        assert catalog.runs.ended_counts() == {("orders", TASK, "DONE"): 1}
        assert (old.server_url, catalog.server_url) == (None, shown_url(database_url(url)))
        assert catalog.serving.pauses()["orders"].comment == "for now"
    assert not list(home.glob("catalog.db*"))
    with closing(Catalog.of_home(home)), closing(Catalog.of_home(home, url)) as catalog:
        assert len(catalog.runs.list()) == 1, "a new file is not taken in a second time"


def test_a_copy_for_a_backup_is_an_sqlite_file_without_the_processes(url: str, home: Path) -> None:
    with closing(Catalog.of_home(home, url)) as catalog, closing(sqlite3.connect(":memory:")) as copy:
        catalog.runs.enqueue(request(1))
        catalog.serving.beat("query", "ready")
        catalog.write_copy(copy)
        assert copy.execute("SELECT id, state FROM runs").fetchall() == [("run_1", "QUEUED")]
        assert copy.execute("SELECT count(*) FROM roles").fetchone() == (0,)


def test_a_catalog_belongs_to_one_home(url: str, home: Path, tmp_path: Path) -> None:
    with closing(Catalog.of_home(home, url)) as catalog:
        catalog.runs.enqueue(request(1))
        with pytest.raises(UsageError, match=rf"belongs to another home, .*:{home}\.") as caught:
            Catalog.of_home(tmp_path / "another", url)
        assert "CREATE DATABASE" in str(caught.value.hint)
        beside_url = f"{url}?options=-csearch_path%3Danother"
        with catalog._engine.begin() as connection:
            connection.execute(sa.text("CREATE SCHEMA another"))
        with pytest.raises(MachineError, match="no schema has been selected"):
            Catalog.of_home(tmp_path / "another", beside_url.replace("another", "nowhere"))
        with closing(Catalog.of_home(tmp_path / "another", beside_url)) as beside:
            assert beside.runs.list() == []
            watch = beside.write_watch()
            watch.has_new()
            beside.serving.beat("query", "ready")
            assert becomes_new(watch), "this schema's tables have triggers of their own"
            watch.close()


def test_a_copied_home_may_have_it_once_the_other_server_is_gone(url: str, home: Path, tmp_path: Path) -> None:
    with closing(Catalog.of_home(home, url)) as catalog:
        catalog.serving.beat("query", "ready")
        shutil.copytree(home, tmp_path / "copy")
        with pytest.raises(ConflictError, match=r"A server of .* used the catalog"):
            Catalog.of_home(tmp_path / "copy", url)
        with catalog._engine.begin() as connection:
            connection.execute(sa.text("UPDATE roles SET beat_ms = beat_ms - 100000"))
    with closing(Catalog.of_home(tmp_path / "copy", url)) as copy:
        assert copy.serving.role("query") is None
    (tmp_path / "copy" / OWNER_FILE).unlink()
    with pytest.raises(UsageError, match="belongs to another home"):
        Catalog.of_home(tmp_path / "copy", url)


def test_a_database_that_is_gone_for_a_while(home: Path) -> None:
    from tests.postgresql import postgres_server

    with postgres_server() as server:
        url = server.database()
        with closing(Catalog.of_home(home, url)) as catalog:
            watch = catalog.write_watch()
            watch.has_new()
            server.stop()
            with pytest.raises(MachineError, match=r"The catalog postgresql://.*/hybrid_1 does not answer") as caught:
                catalog.runs.enqueue(request(1))
            assert "psql" in str(caught.value.hint)
            assert watch.has_new() or watch.has_new(), "in doubt"
            with pytest.raises(MachineError):
                Catalog.of_home(home, url)
            server.start()
            assert catalog.runs.enqueue(request(1)) is not None, "lost connections are replaced"
            assert watch.has_new() and not watch.has_new()
            watch.close()


def test_a_user_without_rights(postgres: PostgresServer, url: str, home: Path) -> None:
    postgres.execute("CREATE ROLE reader LOGIN")
    with pytest.raises(MachineError, match=r"refuses what hybrid needs: permission denied") as caught:
        Catalog.of_home(home, url.replace("postgres@", "reader@"))
    assert "GRANT CREATE" in str(caught.value.hint)
    with pytest.raises(MachineError, match='database "nowhere" does not exist'):
        Catalog.of_home(home, postgres.url("nowhere"))


def test_commands_and_the_doctor_name_the_database(
    home: Path, url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home.mkdir(mode=0o700)
    monkeypatch.setenv("HYBRID_CATALOG", url)
    assert run(["--home", str(home), "task", "list"]) == 0 and not (home / "catalog.db").exists()
    assert run(["--home", str(home), "doctor"]) == 0
    monkeypatch.setenv("HYBRID_CATALOG", "postgresql://me:pass@127.0.0.1:1/db")
    capsys.readouterr()
    assert run(["--home", str(home), "task", "list"]) == 1
    said = capsys.readouterr().err
    assert "The catalog postgresql://me:***@127.0.0.1:1/db does not answer" in said and "pass" not in said
    assert run(["--home", str(home), "doctor"]) == 3
    assert "does not answer" in capsys.readouterr().out
    assert run(["--home", str(home), "config", "show", "--json"]) == 0
    out = capsys.readouterr().out
    assert "postgresql://********@127.0.0.1:1/db" in out and "pass" not in out
    monkeypatch.setenv("HYBRID_CATALOG", "postgresql://127.0.0.1:1/db?user=me&password=word")
    assert run(["--home", str(home), "task", "list"]) == 1
    assert run(["--home", str(home), "doctor"]) == 3
    assert run(["--home", str(home), "config", "show", "--json"]) == 0
    monkeypatch.setenv("HYBRID_CATALOG", "postgresql://me:pa@word@127.0.0.1:1/db")
    assert run(["--home", str(home), "task", "list"]) == 1
    assert run(["--home", str(home), "doctor"]) != 0
    assert run(["--home", str(home), "config", "show", "--json"]) == 0
    said = capsys.readouterr()
    assert "word" not in (said.out + said.err).replace("password", "") and "write %40 for @" in said.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mysql://h/d", "'mysql' is not supported: PostgreSQL is"),
        ("sqlite:///x", "'sqlite' is not supported"),
        ("postgresql://h", "names no database"),
        ("catalog.db", "this is not a URL such as postgresql://"),
        ("postgresql://h:port/d", "this is not a URL"),
        ("postgresql://u:p@ss@h/d", "is not escaped: write %40"),
        ("postgresql://u:p@s/s@h/d", "is not escaped: write %40"),
    ],
)
def test_urls_that_are_refused(text: str, words: str) -> None:
    with pytest.raises(SpecError, match=words):
        database_url(text)


def test_urls_that_are_taken() -> None:
    for text in ("postgresql://u:p@h:5/d?sslmode=require", "postgres://u:p@h:5/d", "postgresql+psycopg://u:p@h:5/d"):
        url = database_url(text)
        assert url.drivername == "postgresql+psycopg" and shown_url(url) == "postgresql://u:***@h:5/d"
    for text in ("postgresql://u@h1:5,h2/d", "postgresql://u@h1,h2:6/d?sslmode=require", "postgresql://[::1]:5/d"):
        with_ports = {"h1,": "h1:5432,", "h2/": "h2:5432/", "?sslmode=require": ""}
        expected = text
        for old, new in with_ports.items():
            expected = expected.replace(old, new)
        assert shown_url(database_url(text)) == expected
    assert shown_url(database_url("postgresql:///d?host=/var/run")) == "postgresql://%2Fvar%2Frun/d"


def test_a_driver_that_is_not_installed(url: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MachineError, match="needs the driver psycopg") as caught:
        Catalog.of_home(home, url)
    assert caught.value.hint == "pip install 'hybrid[postgresql]'"


def test_a_list_of_hosts(postgres: PostgresServer, url: str, home: Path) -> None:
    """The first one is a standby that is gone."""
    with closing(Catalog.of_home(home, url.replace("@", "@127.0.0.1:1,"))) as catalog:
        assert catalog.runs.enqueue(request(1)) is not None
    with pytest.raises(MachineError, match=r"127\.0\.0\.1:1,127\.0\.0\.1:1/hybrid") as caught:
        Catalog.of_home(home, "postgresql://postgres@127.0.0.1:1,127.0.0.1:1/hybrid?sslmode=prefer&password=word")
    hint = str(caught.value.hint)
    assert "psql 'postgresql://postgres@127.0.0.1:1,127.0.0.1:1/hybrid?sslmode=prefer' -c" in hint


def test_an_option_that_does_not_exist(url: str, home: Path) -> None:
    with pytest.raises(SpecError, match=r"catalog: .*nonsense"):
        Catalog.of_home(home, f"{url}?nonsense=1&password=word")


def test_a_pool_whose_connections_are_all_in_use(url: str, home: Path) -> None:
    with closing(Catalog.of_home(home, url, DatabaseLimits(answer_s=1))) as catalog, ExitStack() as used:
        for _ in range(15):
            used.enter_context(catalog._engine.connect())
        with pytest.raises(MachineError, match=r"The catalog postgresql://.* no connection became free within 1 s"):
            catalog.runs.list()


def test_a_watch_of_one_schema_sees_nothing_of_another(url: str, home: Path, tmp_path: Path) -> None:
    with closing(Catalog.of_home(home, url)) as catalog:
        with catalog._engine.begin() as connection:
            connection.execute(sa.text("CREATE SCHEMA another"))
        # The tables of the schema `public` are no reason to make none.
        beside_url = f"{url}?options=-csearch_path%3Danother,public"
        with closing(Catalog.of_home(tmp_path / "another", beside_url)) as beside:
            watch = catalog.write_watch()
            watch.has_new()
            beside.serving.beat("query", "ready")
            assert not becomes_new(watch, 0.3)
            catalog.serving.beat("query", "ready")
            assert becomes_new(watch)
            watch.close()
            beside.runs.enqueue(request(1))
        assert catalog.runs.list() == []


def test_a_database_that_can_only_be_read(postgres: PostgresServer, url: str, home: Path) -> None:
    Catalog.of_home(home, url).close()
    postgres.execute(f"ALTER DATABASE {url.rpartition('/')[2]} SET default_transaction_read_only = on")
    with closing(Catalog.of_home(home, url)) as catalog:
        assert catalog.runs.list() == [], "looking is possible"
        with pytest.raises(MachineError, match=r"can only be read: cannot execute INSERT") as caught:
            catalog.runs.enqueue(request(1))
    assert "target_session_attrs=read-write" in str(caught.value.hint)


def test_a_statement_or_a_lock_that_takes_too_long(url: str, home: Path) -> None:
    limits = DatabaseLimits(lock_ms=100, statement_ms=600)
    with closing(Catalog.of_home(home, url, limits)) as catalog, catalog._engine.connect() as connection:
        connection.exec_driver_sql("SELECT pg_sleep(0.3)")
        with pytest.raises(MachineError, match=r"did not finish a statement within 0.6 s: canceling statement"):
            connection.exec_driver_sql("SELECT pg_sleep(60)")
        connection.rollback()
        schema.lock(connection)
        with pytest.raises(MachineError, match=r"is locked by another session for more than 0.1 s: canceling"):
            Catalog.of_home(home, url, limits)


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_an_encoding_that_lacks_characters(postgres: PostgresServer, home: Path, encoding: str) -> None:
    url = postgres.database(f"ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'")
    with pytest.raises(UsageError, match=f"has the encoding {encoding}") as caught:
        Catalog.of_home(home, url)
    assert "ENCODING 'UTF8'" in str(caught.value.hint)
