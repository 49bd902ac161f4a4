"""Each list, show and status command on terminals of 80, 100 and 160 columns, held by the files in `snapshots/`.

A change of output that is meant: `pytest tests/cli/test_snapshots.py --rewrite-snapshots`, then read the difference.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from hybrid.cli.main import run
from hybrid.config.settings import Setting, Settings
from tests.cli.prepared_answers import PreparedClient, prepared_backups, prepared_warehouse
from tests.cli.terminals import Terminal
from tests.docs.test_reference import CODE

SNAPSHOTS = Path(__file__).parent / "snapshots"
WIDTHS = (80, 100, 160)
_COMMAND = re.compile(r"hybrid (?!\()\w+")

COMMANDS = {
    "status": "status",
    "table list": "table list",
    "table list --dropped": "table list --dropped",
    "table show": "table show rides",
    "task list": "task list",
    "task show": "task show run-2d20809138da44e1",
    "task schedule": "task schedule",
    "segment list": "segment list rides",
    "segment show": "segment show rides NAME",
    "boundary show": "boundary show rides",
    "replacement list": "replacement list rides",
    "replacement show": "replacement show rides replace-1f2e3d4c5b6a7988",
    "backfill list": "backfill list",
    "backfill status": "backfill status backfill-5f0c1d2e3a4b5c6d",
    "backfill plan": "backfill plan rides --update fare=fare/100",
    "connector list": "connector list rides",
    "flow list": "flow list",
    "rejected list": "rejected list rides",
    "purge list": "purge rides --list",
    "erase list": "erase list",
    "erase show": "erase show erasure-5f0c1a2b3c4d5e6f",
    "query": "query SELECT",
    "query list": "query list",
    "query explained": "query EXPLAIN\tPLAN\tFOR\tSELECT",
    "query --explain": "query --explain SELECT",
    "backup list": "backup list /backups/hybrid",
    "access list": "access list",
    "config show": "config show",
    "kafka status": "kafka status",
    "kafka topic list": "kafka topic list",
    "warehouse show": "warehouse show",
}
EMPTY = ["table list", "task list", "task schedule", "segment list", "replacement list", "backfill list"]
EMPTY += ["connector list", "flow list", "rejected list", "purge list", "backup list", "erase list"]
EMPTY += ["table list --dropped", "query list"]


@pytest.fixture(autouse=True)
def prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verbs answer what is prepared; what a command asks of this machine is prepared here."""
    from hybrid.home.accounts import Account, Accounts, Right
    from hybrid.jvm.broker import LocalBroker

    monkeypatch.setattr("hybrid.cli.dispatch.server_url", lambda cli: "http://prepared")
    monkeypatch.setattr("hybrid.rpc.client.Client", PreparedClient)
    monkeypatch.setattr("hybrid.rpc.client.secret_of", lambda *_: None)
    monkeypatch.setattr("hybrid.cli.replacement.getpass.getuser", lambda: "ada")
    monkeypatch.setattr("hybrid.cli.command.load_settings", lambda **_: _settings())
    for module in ("access", "kafka"):
        monkeypatch.setattr(f"hybrid.cli.{module}.require_home", lambda cli: None)
    for module in ("access", "backup", "warehouse"):
        monkeypatch.setattr(f"hybrid.cli.{module}.require_right", lambda *_: None)
    monkeypatch.setattr(
        "hybrid.operations.backups.backups.list_backups",
        lambda _: [] if PreparedClient.is_empty else prepared_backups(),
    )
    accounts = [
        Account("ada", Right.ADMIN, "", "2025-11-25T05:39:39.213+00:00"),
        Account("ci", Right.READ, "", "2025-11-25T06:00:00Z"),
    ]
    monkeypatch.setattr(Accounts, "list", lambda self: accounts)
    broker = SimpleNamespace(state="running", address="127.0.0.1:9092", pid=4711, log="/data/hybrid/kafka/kafka.log")
    monkeypatch.setattr(LocalBroker, "status", lambda self: broker)
    topic = SimpleNamespace(name="rides", partitions=[0, 1], id="1YvRkWTVQ3uAgZyvDWrQxw")
    monkeypatch.setattr("hybrid.kafka.topics.list_topics", lambda brokers: [topic])
    monkeypatch.setattr("hybrid.cli.warehouse.refuse_server", lambda *_, **options: None)
    opened = contextlib.nullcontext(SimpleNamespace(context=None))
    monkeypatch.setattr("hybrid.cli.warehouse.dispatcher", lambda *_, **options: opened)
    monkeypatch.setattr("hybrid.operations.warehouse.sync.warehouse_status", lambda home: prepared_warehouse())


class _Folder(type(Path())):  # type: ignore[misc]
    """A folder that is there."""

    def is_dir(self) -> bool:
        return True


def _settings() -> Settings:
    long = "/data/hybrid/warehouse/of/a/home/whose/folder/lies/deep/below/the/root/of/its/disk"
    values = (
        Setting("server", None, "default", "a server that does the work"),
        Setting("token", "s3cret", "HYBRID_TOKEN", "the secret of an account on that server"),
        Setting("kafka", "localhost:9092", "/data/hybrid/hybrid.toml", "brokers of tables whose config names none"),
        Setting("warehouse", long, "/data/hybrid/hybrid.toml", "where tables lie: a folder, or s3://bucket/prefix"),
    )
    return Settings(_Folder("/data/hybrid"), "flag", values, {"spark.master": "local[2]"})


def printed(monkeypatch: pytest.MonkeyPatch, line: str, width: int, *options: str) -> str:
    """What a command prints on a terminal, results and messages in their order."""
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        assert run([*(word.replace("\t", " ") for word in line.split(" ")), *options]) in (0, 3)
    return out.getvalue()


@pytest.mark.parametrize("name", COMMANDS)
def test_output(name: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    pages = {width: printed(monkeypatch, COMMANDS[name], width) for width in WIDTHS}
    shown = "".join(f"{f' {width} columns ':=^{width}}\n{page}" for width, page in pages.items())
    path = SNAPSHOTS / f"{name.replace(' ', '-').replace('---', '--')}.txt"
    if request.config.getoption("--rewrite-snapshots"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(shown, encoding="utf-8")
    assert path.exists(), "pytest tests/cli/test_snapshots.py --rewrite-snapshots"
    assert shown == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("width", [60, *WIDTHS])
def test_every_line_fits_and_nothing_is_cut(name: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    page = printed(monkeypatch, COMMANDS[name], width)
    assert "…" not in page and "\x1b" not in page
    assert [line for line in page.splitlines() if len(line) > width and not _COMMAND.search(line)] == []


def test_every_list_show_and_status_has_a_snapshot() -> None:
    shown = {" ".join(words) for words in CODE if words[-1] in ("list", "show", "status", "schedule", "plan")}
    assert shown - set(COMMANDS) == set()
    assert {path.stem for path in SNAPSHOTS.iterdir()} == {
        name.replace(" ", "-").replace("---", "--") for name in COMMANDS
    }


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_list_is_a_sentence_with_the_next_command(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PreparedClient, "is_empty", True)
    page = printed(monkeypatch, COMMANDS[name], 100)
    assert len(page.splitlines()) == 1 and ". " in page and "hybrid " in page
