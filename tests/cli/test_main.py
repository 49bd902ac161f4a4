from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import click
import pytest

from hybrid.cli import main as cli_main
from hybrid.cli.command import Cli, HybridCommand, pass_cli
from hybrid.cli.error_report import without_secret
from hybrid.cli.main import NOUNS, hybrid, run
from hybrid.errors import ConflictError, MachineError

HEAVY = (
    "pyspark",
    "delta",
    "duckdb",
    "deltalake",
    "kafka",
    "pyarrow",
    "pandas",
    "sqlalchemy",
    "sqlglot",
    "yaml",
    "prompt_toolkit",
    "hybrid.config.table_json",  # with all that reads configs
)


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> list[Cli]:
    """A command `probe` that keeps its Cli, and raises or returns what it is told."""
    seen: list[Cli] = []

    @click.command(cls=HybridCommand)
    @click.argument("does", default="0")
    @pass_cli
    def probe(cli: Cli, does: str) -> int:
        seen.append(cli)
        if does == "conflict":
            raise ConflictError("Somebody else acts.", hint="wait")
        if does == "bug":
            raise RuntimeError("oh")
        if does == "interrupt":
            raise KeyboardInterrupt
        return int(does)

    monkeypatch.setitem(hybrid.commands, "probe", probe)
    return seen


@pytest.mark.parametrize(
    "args",
    [
        ["--home", "HOME", "--json", "-v", "--server", "http://x", "probe"],
        ["probe", "--home", "HOME", "--json", "-v", "--server", "http://x"],
        ["--json", "probe", "0", "-v", "--home", "HOME", "--server", "http://x"],
    ],
)
def test_global_options_before_and_after(probe: list[Cli], home: Path, args: list[str]) -> None:
    assert run([str(home) if arg == "HOME" else arg for arg in args]) == 0
    cli = probe[0]
    assert (cli.home, cli.format, cli.verbose, cli.settings.server) == (home, "json", True, "http://x")


def test_every_command_takes_the_global_options(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for args in (["config", "show"], ["kafka", "topic", "list"], ["kafka", "start"], ["setup"]):
        assert run([*args, "--home", str(home), "--format", "csv", "-v", "--help"]) == 0
        assert "Global options" in capsys.readouterr().out


def test_the_option_nearest_to_the_end_wins(probe: list[Cli]) -> None:
    run(["--json", "probe", "--format", "csv"])
    assert probe[0].format == "csv"


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["probe", "3"], 3, ""),
        (["probe", "conflict"], 4, "error: Somebody else acts.\nhint: wait\n"),
        (["probe", "interrupt"], 130, "\ninterrupted\n"),
        (
            ["probe", "--fromat"],
            2,
            "error: No such option '--fromat'. Did you mean '--format'?\nhint: hybrid probe --help\n",
        ),
        (["prob"], 2, "error: No such command 'prob'. Did you mean 'probe'?\nhint: hybrid --help\n"),
    ],
)
def test_exit_codes_and_words(
    probe: list[Cli], capsys: pytest.CaptureFixture[str], args: list[str], code: int, says: str
) -> None:
    assert run(args) == code
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", says)


def test_a_bug_is_logged(probe: list[Cli], home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["probe", "bug", "--home", str(home)]) == 1
    log = home / "logs" / "cli.log"
    said = capsys.readouterr().err
    assert "error: Unexpected RuntimeError: oh" in said and str(log) in said and "Traceback" not in said
    assert "Traceback" in log.read_text()


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--token", "abc", "table"], ["--token", "...", "table"]),
        (["--token=abc", "--where=name = 'ada'"], ["--token=...", "--where=..."]),
        (["AddTable", "-password", "abc", "-exec"], ["AddTable", "-password", "...", "-exec"]),
        (["-authToken", "Basic YWRhOmFiYw==", "-authToken=abc"], ["-authToken", "...", "-authToken=..."]),
        (["--server", "http://ada:abc@h:1", "--server=ada:abc@h:1"], ["--server", "h:1", "--server=h:1"]),
        (["--server", "http://h:1", "list"], ["--server", "http://h:1", "list"]),
        (["--set", "/streamConfigs/sasl.password=abc"], ["--set", "/streamConfigs/sasl.password=..."]),
        (['--set=/streamConfigs={"sasl.jaas.config": "abc"}'], ["--set=..."]),
        (["--set", "/replication=2"], ["--set", "/replication=2"]),
        (["--stream-config", "basic.auth.user.info=a:abc"], ["--stream-config", "basic.auth.user.info=..."]),
        (["--var", "SECRET_KEY=abc", "--var", "day=1"], ["--var", "SECRET_KEY=...", "--var", "day=1"]),
        (["--registry", "https://ada:abc@h"], ["--registry", "..."]),
        (["query", "select * from t where password = 'abc'"], ["query", "..."]),
    ],
)
def test_a_log_has_no_secret_of_a_command_line(words: list[str], shown: list[str]) -> None:
    assert without_secret(words) == shown


def test_a_bug_where_nothing_can_be_logged(
    probe: list[Cli], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    assert run(["probe", "bug", "--home", str(tmp_path / "file")]) == 1
    assert "no log, because the settings cannot be read" in capsys.readouterr().err
    assert run(["config", "show", "--home", str(tmp_path / "file")]) == 1
    assert f"Is {tmp_path / 'file'} a folder?" in capsys.readouterr().err


def test_a_run_inside_a_run_logs_to_its_own_home(probe: list[Cli], tmp_path: Path) -> None:
    @click.command(cls=HybridCommand)
    def tour() -> None:
        run(["probe", "bug", "--home", str(tmp_path / "inner")])
        logging.getLogger("hybrid").info("outer line")

    hybrid.commands["tour"] = tour
    try:
        run(["tour", "--home", str(tmp_path / "outer")])
    finally:
        del hybrid.commands["tour"]
    assert "outer line" not in (tmp_path / "inner" / "logs" / "cli.log").read_text()
    assert "Traceback" not in (tmp_path / "outer" / "logs" / "cli.log").read_text()


def test_v_shows_the_traceback(probe: list[Cli], capsys: pytest.CaptureFixture[str]) -> None:
    run(["probe", "conflict", "-v"])
    assert "Traceback" in capsys.readouterr().err


def test_version_and_bare_call(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("hybrid 0.")
    assert run([]) == 2
    assert "Commands:" in capsys.readouterr().err


def test_every_noun_loads() -> None:
    for name, noun in NOUNS.items():
        assert isinstance(noun.load(), click.Command), name


@pytest.mark.process
def test_start_up_imports_nothing_heavy() -> None:
    code = f"import sys, hybrid.cli.main; sys.exit(' '.join(m for m in {HEAVY!r} if m in sys.modules) or 0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.process
def test_a_query_imports_no_library_that_it_does_not_use(home: Path) -> None:
    """Each of these takes as long to import as the query takes to answer."""
    orders = Path(__file__).parents[2] / "data" / "orders"
    documents = ["--schema", f"{orders}/orders_schema.json", "--config", f"{orders}/orders_offline_table.json"]
    assert run(["--home", str(home), "table", "create", *documents]) == 0
    arguments = ["--home", str(home), "query", "select count(*), sum(amount) from orders"]
    unused = ("pyarrow", "numpy", "pandas", "pyspark", "delta", "py4j", "starlette", "jsonschema", "fastavro", "rich")
    unused = (*unused, "prompt_toolkit", "hybrid.cli.shell.session", "grpc", "sqlite3", *_RARE)
    code = (
        f"import sys; from hybrid.cli.main import run; assert run({arguments!r}) == 0;"
        f"sys.exit(' '.join(m for m in {unused!r} if m in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


# What a command must not import: each takes as long as all that the command does, or longer.
_API = ("hybrid.api", "hybrid.rpc.verbs", "hybrid.home.home", "hybrid.query")
_ENGINE = ("duckdb", "sqlglot", "hybrid.query.engine", "pyarrow", "pandas", "numpy", "pyspark", "jsonschema", "rich")
# Modules of ours for what a table, a statement or an answer may have, and most have not.
_RARE = (
    "hybrid.config.connectors", "hybrid.config.expectations", "hybrid.config.pinning", "hybrid.config.stream_decoder",
    "hybrid.lake.spark_connect", "hybrid.operations.erasure", "hybrid.query.error_mapping", "hybrid.query.explain",
    "hybrid.query.partial_upsert", "hybrid.query.spark", "hybrid.query.time_travel", "hybrid.replace",
)  # fmt: skip
_NOT_IMPORTED = {
    "--help": (*HEAVY, *_API),
    "query --help": (*HEAVY, *_API),
    "--home HOME/none query select_1": (*HEAVY, *_API),
    "--home HOME/none status": (*HEAVY, *_API),
    "--home HOME/none table list": (*HEAVY, *_API),
    "--home HOME/none task list": (*HEAVY[:-1], "hybrid.api", "hybrid.query"),
    "--home HOME/empty status": (*_ENGINE, "sqlalchemy", "kafka"),
    "--home HOME/orders status": (*_ENGINE, "kafka"),
    "--home HOME/orders table list": (*_ENGINE, "sqlalchemy", "kafka"),
    "--home HOME/orders task list": (*_ENGINE, "deltalake", "kafka"),
}


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty home, and one with a table."""
    folder = tmp_path_factory.mktemp("homes")
    (folder / "empty").mkdir()
    orders = Path(__file__).parents[2] / "data" / "orders"
    documents = ["--schema", f"{orders}/orders_schema.json", "--config", f"{orders}/orders_offline_table.json"]
    assert run(["--home", str(folder / "orders"), "table", "create", *documents]) == 0
    return folder


@pytest.mark.process
@pytest.mark.parametrize("line", _NOT_IMPORTED)
def test_a_command_imports_no_library_that_it_does_not_use(homes: Path, line: str) -> None:
    args = line.replace("HOME", str(homes)).replace("select_1", "select 1").split(" ")
    assert imported(f"run({args!r})", _NOT_IMPORTED[line]) == []


@pytest.mark.process
def test_completion_imports_no_library(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"_HYBRID_COMPLETE": "bash_complete", "COMP_WORDS": "hybrid que", "COMP_CWORD": "1"}
    for name, value in {**asked, "HYBRID_HOME": str(homes / "orders")}.items():
        monkeypatch.setenv(name, value)
    assert imported("run([])", (*HEAVY, *_API)) == []


def imported(code: str, modules: Sequence[str]) -> list[str]:
    """Which of the modules a process has imported after the code."""
    tail = f"print('IMPORTED', *(m for m in {tuple(modules)!r} if m in sys.modules))"
    code = (
        f"import sys, contextlib; from hybrid.cli.main import run\nwith contextlib.suppress(SystemExit): {code}\n{tail}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()[-1].split()[1:]


@pytest.mark.process
def test_help_imports_no_noun() -> None:
    code = (
        "import sys; from hybrid.cli.main import run; run(['--help']);"
        "sys.exit(' '.join(m for m in sys.modules if m.startswith('hybrid.cli.')) )"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert set(done.stderr.split()) == {
        "hybrid.cli.main",
        "hybrid.cli.command",
        "hybrid.cli.output",
        "hybrid.cli.cells",
    }


@pytest.mark.process
def test_a_closed_pipe_is_no_traceback(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-c", f"import {cli_main.__name__} as m; m.main()", "config", "show"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


def test_config_show(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("HYBRID_KAFKA", "k:1")
    assert run(["config", "show", "--json", "--home", str(home)]) == 0
    shown = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert (shown["kafka"]["value"], shown["kafka"]["source"]) == ("k:1", "HYBRID_KAFKA")
    assert (shown["home"]["value"], shown["home"]["source"]) == (str(home), "flag")
    assert not home.exists()


@pytest.mark.parametrize("kind", [RuntimeError, MachineError])
def test_what_only_follows_from_an_interrupt_is_one(
    kind: type[Exception], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command(cls=HybridCommand)
    def torn() -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise kind("Job 3 cancelled as part of cancellation of all jobs")

    hybrid.commands["torn"] = torn
    try:
        assert run(["torn", "--home", str(home)]) == 130
    finally:
        del hybrid.commands["torn"]
    assert capsys.readouterr().err == "interrupted\n"
