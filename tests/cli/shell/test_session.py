"""`hybrid shell` from a pipe and with --execute; each dot command; the history; the pager. No terminal."""

from __future__ import annotations

import io
import json
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.api.hybrid import connect
from hybrid.cli.command import Cli
from hybrid.cli.main import run
from hybrid.cli.shell.commands import run_input
from hybrid.cli.shell.history import PrivateHistory, history_file
from hybrid.cli.shell.pager import paged, pager_command
from hybrid.cli.shell.session import ShellSession
from hybrid.cli.shell.statements import ShellInput
from hybrid.errors import UsageError
from hybrid.progress import Silent
from hybrid.schema.secret_texts import holds_secret
from tests.cli.terminals import Terminal
from tests.serve.app import lay_orders

SQL = "select order_id, customer from orders_OFFLINE order by order_id"
NUMBERS = ", ".join(f"orders_OFFLINE t{place}" for place in range(4))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with the table orders."""
    folder = tmp_path_factory.mktemp("shell") / "home"
    with connect(folder) as opened:
        lay_orders(opened)
        yield folder


@pytest.fixture
def shell(home: Path, capsys: pytest.CaptureFixture[str]):
    """Runs inputs with --execute: exit code, stdout, stderr."""

    def ran(*inputs: str, options: tuple[str, ...] = ()) -> tuple[int, str, str]:
        given = [word for text in inputs for word in ("--execute", text)]
        code = run(["--home", str(home), "shell", *options, *given])
        return code, *capsys.readouterr()

    return ran


def piped(monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))


# Statements


@pytest.mark.slow
def test_statements_run_one_by_one(shell) -> None:
    code, out, err = shell(f"{SQL}; select count(*) n from orders_OFFLINE", options=("--format", "csv"))
    assert (code, out, err) == (0, "order_id,customer\n1,ada\n2,ada\nn\n2\n", "")


def test_the_first_error_ends_it(shell) -> None:
    code, out, err = shell("select 1 x from orders_OFFLINE limit 1; select nope from orders_OFFLINE; select 2 y")
    assert code == 1 and out == "x\n-\n1\n"
    assert err.startswith("error: Column 'nope' does not exist at line 1, column 8.\nhint: Table 'orders' has the col")


def test_a_pipe(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    piped(monkeypatch, b"\xef\xbb\xbf-- first\nselect 1 x\nfrom orders_OFFLINE limit 1;\r\n.format jsonl\nselect 2 y")
    assert run(["--home", str(home), "shell"]) == 0
    assert capsys.readouterr().out == 'x\n-\n1\n{"y": 2}\n'
    piped(monkeypatch, b"select 1 x;\nselect '\xff';\n")
    assert run(["--home", str(home), "shell"]) == 2
    out, err = capsys.readouterr()
    assert out == "x\n-\n1\n" and "Line 2 of the statements is not UTF-8" in err


def test_quit_ends_a_pipe(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    piped(monkeypatch, b"select 1 x;\nquit\nselect nope;\n")
    assert run(["--home", str(home), "shell"]) == 0
    assert capsys.readouterr() == ("x\n-\n1\n", "")


def test_ten_rows_are_not_shown_without_a_word(shell) -> None:
    code, out, err = shell(f"select t0.order_id from {NUMBERS}", options=("--format", "csv"))
    assert code == 0 and len(out.splitlines()) == 11
    assert err == "warning: Only the first 10 rows are shown, as in Pinot: add LIMIT to the query for more.\n"


def test_a_home_that_does_not_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--home", str(tmp_path / "none"), "shell", "-e", "select 1"]) == 1
    assert "does not exist" in capsys.readouterr().err


@pytest.mark.slow
def test_set_holds_for_the_statements_after_it(shell) -> None:
    code, _, err = shell("-- why\nSET timeoutMs = 0 -- ms\n;", "select nope -- x")
    assert code == 1 and "timeoutMs must be" in err
    code, out, err = shell("SET dropResults = true", ".set", SQL, "RESET dropResults", ".set", SQL, options=("--json",))
    assert code == 0 and "No options are set" in err
    assert (
        out == 'SET dropresults = true;\n[]\n[{"order_id": 1, "customer": "ada"}, {"order_id": 2, "customer": "ada"}]\n'
    )
    code, _, err = shell("SET timeoutMs = 9000", "select\n nope from orders_OFFLINE")
    assert "at line 2, column 2." in err
    code, _, err = shell("reset nosuch")
    assert code == 2 and "No option 'nosuch' is set here." in err
    assert shell("SET timeoutMs = 0", "reset all", "select 1 x")[0] == 0


# Dot commands


def test_parameters_are_set_for_the_statements_that_have_them(shell) -> None:
    sql = "select order_id from orders_OFFLINE where customer = :who and order_id in (:ids) order by 1"
    setting = (".set who 'ada'", "\\set ids [2, 9]")
    assert shell(*setting, sql, "select 1 x", options=("--format", "csv"))[:2] == (0, "order_id\n2\nx\n1\n")
    code, out, err = shell(*setting, ".set", ".unset who", ".set", sql)
    assert out == '.set who "ada"\n.set ids [2, 9]\n.set ids [2, 9]\n' and code == 1
    assert "Parameter 'who' has no value." in err
    assert "customer" in shell(*setting, f".explain {sql}")[1]
    for wrong, words in ((".set ids [1", "Parameter 'ids' is no JSON"), (".unset nope", "No parameter 'nope' is set.")):
        assert shell(wrong)[0] == 2 and words in shell(wrong)[2]


def test_tables_and_schema(shell) -> None:
    code, out, _ = shell(".tables", ".tables none", ".schema orders", options=("--json",))
    tables, none, columns = (json.loads(line) for line in out.splitlines())
    assert code == 0 and [table["name"] for table in tables] == ["orders"] and none == []
    assert {"column": "ts", "type": "LONG", "role": "time"} in columns
    described = json.loads(shell("DESCRIBE orders;", options=("--json",))[1])
    assert sorted(map(str, described)) == sorted(map(str, columns)), "one word for one thing"
    assert shell("\\d orders", options=("--json",))[1] == shell(".schema", options=("--json",))[1]
    code, _, err = shell(".schema order")
    assert code == 1 and "Did you mean 'orders'?" in err


def test_explain(shell) -> None:
    code, out, _ = shell(f".explain {SQL}")
    assert code == 0 and "orders_OFFLINE: table: orders" in out
    assert shell(f"{SQL} \\explain")[1] == out
    assert shell(SQL, ".explain")[1].endswith(out)
    code, _, err = shell(".explain")
    assert code == 2 and "no statement to explain" in err


@pytest.mark.slow
def test_revision_and_as_of(shell) -> None:
    code, out, err = shell(SQL, ".revision", ".revision on", SQL)
    revision = out.splitlines()[4]
    assert code == 0 and revision.startswith("orders[OFFLINE=1 ") and err == f"revision {revision}\n"
    code, out, err = shell(f".as-of {revision}", SQL, ".revision", ".as-of now", ".as-of")
    assert code == 0 and out.splitlines()[4] == revision
    assert err == f"Statements are answered as of {revision}.\n" + "Statements are answered as of now.\n" * 2
    assert shell(".revision")[0] == 2
    code, _, err = shell(SQL, options=("--as-of", "2001-01-01T00:00:00Z"))
    assert code == 1 and "asOf" in err


def test_format_timing_and_switches(shell) -> None:
    code, out, err = shell(".format", ".format markdown", "select 1 x", ".timing on", "select 1 x")
    assert code == 0 and out == "| x |\n| ---: |\n| 1 |\n" * 2
    assert err.startswith("The format is table.\nTiming is on.\n") and err.rstrip().endswith("ms")
    assert shell(".timing", ".wide on", ".pager off", ".pager")[2] == (
        "Timing is on.\nWide tables are on.\nThe pager is off.\nThe pager is on.\n"
    )
    for wrong, words in [
        (".format xml", ".format takes table, json, jsonl, csv, markdown, not 'xml'."),
        (".format parquet", "for files: .output FILE.parquet"),
        (".timing maybe", ".timing takes on or off, not 'maybe'."),
        (".tabels", "There is no '.tabels'. Did you mean '.tables'?"),
        (".watch", "on a terminal"),
        (".set x", "SET name = value;"),
        ("select 1 \\tables", ".tables does not end a statement"),
        (".help nosuch", "There is no 'nosuch'."),
    ]:
        code, _, err = shell(wrong)
        assert code == 2 and words in err, wrong


def test_help(shell) -> None:
    out = shell(".help")[1]
    assert all(f".{name}" in out for name in ("tables", "schema", "watch", "quit", "output"))
    assert shell(".help watch")[1].startswith(".watch [SECONDS]\n    Repeat the last statement")
    assert shell("\\?")[1] == shell("help")[1] == out


@pytest.mark.slow
def test_output(shell, tmp_path: Path) -> None:
    path = tmp_path / "a b.csv"
    many = f"select t0.order_id from {NUMBERS}"
    code, out, err = shell(".format json", f".output '{path}'", many, "select 1 x")
    assert code == 0 and out == '[{"x": 1}]\n'  # the next statement only, in the format of the suffix
    assert len(path.read_text().splitlines()) == 17 and "Wrote 16 rows" in err
    code, _, err = shell(f".output '{path}'")
    assert code == 4 and "exists" in err and "--force" in err
    code, out, _ = shell(f".output '{path}' --force", SQL)
    assert code == 0 and path.read_text().startswith("order_id,customer\n")
    code, out, err = shell(f".output {tmp_path}/c.csv", ".output", "select 1 x")
    assert code == 0 and not (tmp_path / "c.csv").exists() and out == "x\n-\n1\n"
    code, out, err = shell(".revision on", "select 1 x", f".output {tmp_path}/d.csv", SQL, ".revision")
    assert code == 0 and "OFFLINE=" in out and f"revision {out.splitlines()[-1]}" in err.splitlines()[-1]
    assert shell(".output nosuffix")[0] == shell(".output a.csv b.csv")[0] == shell(".output 'a")[0] == 2


@pytest.mark.slow
def test_a_failed_statement_leaves_the_output_for_the_next(home: Path, tmp_path: Path) -> None:
    cli = Cli()
    cli.given["home"], cli.progress = str(home), Silent()
    session = ShellSession(cli, is_interactive=False)
    run_input(session, ShellInput(f"output {tmp_path}/a.csv", True))
    assert session.prompt() == f"hybrid ({tmp_path}/a.csv)> "
    with pytest.raises(Exception, match="nope"):
        run_input(session, ShellInput("select nope from orders_OFFLINE"))
    assert list(tmp_path.iterdir()) == []
    run_input(session, ShellInput(SQL))
    assert (tmp_path / "a.csv").read_text() == "order_id,customer\n1,ada\n2,ada\n" and session.prompt() == "hybrid> "


def test_read(shell, tmp_path: Path) -> None:
    inner, outer = tmp_path / "inner.sql", tmp_path / "outer.sql"
    inner.write_text("select 2 y")
    outer.write_text(f"select 1 x;\n.read {inner}\nselect nope;\nselect 3 z;")
    code, out, err = shell(f".read {outer}", options=("--format", "csv"))
    assert code == 1 and out == "x\n1\ny\n2\n" and "nope" in err
    inner.write_text(f".read {inner}")
    code, _, err = shell(f".read {inner}")
    assert code == 2 and "more than 16 files read each other" in err
    inner.write_bytes(b"select '\xff';")
    assert shell(f".read {inner}")[0] == shell(".read")[0] == 2
    assert shell(f".read {tmp_path}/none.sql")[0] == 1
    assert "cannot be read" in shell(f".read {tmp_path}")[2]


# History


@pytest.mark.parametrize(
    "text",
    [
        "select * from t where password = 'x'",
        ".read s3://user:pw@host/x",
        "set s3_secret_access_key=abc;",
        "select 'Bearer abcdefgh12345678'",
        'select \'{"token": "abc"}\'',
        "select 'my-own-secret'",
        "select * from t where password <> 'x' and 'y' = api_key",
        ".read https://host/x?X-Amz-Signature=abc",
        "select * from t where password > 123",
        "select * from t where api_token not in (123, 456)",
        "select * from t where Pwd = 'x'",
        ".set password hunter2",
        "\\set  api_token 'abc'",
        "select 1;\n.set pwd x",
    ],
)
def test_a_secret_is_seen(text: str) -> None:
    assert holds_secret(text, ["my-own-secret"])


@pytest.mark.parametrize(
    "text",
    [
        "select a from t where b = 'c';",
        "select token from t",
        "select 'http://host/path?x=1'",
        ".format csv",
        ".set who ada",
        "",
    ],
)
def test_ordinary_text_is_none(text: str) -> None:
    assert not holds_secret(text, ["my-own-secret", "", "a"])


def test_the_history_is_the_user_s_alone(tmp_path: Path) -> None:
    path = history_file({"XDG_STATE_HOME": str(tmp_path)})
    assert path == tmp_path / "hybrid" / "shell_history"
    assert history_file({"XDG_STATE_HOME": "relative"}).is_relative_to(Path.home() / ".local" / "state")
    path.parent.mkdir()
    path.write_text("\n# x\n+select 0;\n")
    path.chmod(0o644)
    said: list[str] = []
    history = PrivateHistory(path, ["my-own-secret"], said.append)
    for text in ("select\n1;", " select 2;", "select 'my-own-secret';", "select 3;"):
        history.append_string(text)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and said == []
    kept = list(PrivateHistory(path, [], said.append).load_history_strings())
    assert kept == ["select 3;", "select\n1;", "select 0;"]
    assert "my-own-secret" not in path.read_text() and "select 2" not in path.read_text()


def test_a_long_history_loses_its_oldest_entries(tmp_path: Path) -> None:
    path = tmp_path / "h"
    path.write_text("".join(f"\n# 2026\n+select {number:0100};\n" for number in range(12_000)))
    kept = list(PrivateHistory(path, [], print).load_history_strings())
    assert kept[0] == f"select {11_999:0100};" and kept[-1].startswith("select 0") and 3_000 < len(kept) < 6_000
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and list(tmp_path.iterdir()) == [path]


def test_without_a_place_for_it_there_is_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    said: list[str] = []
    history = PrivateHistory(tmp_path / "file" / "history", [], said.append)
    history.append_string("select 1;")
    assert len(said) == 1 and said[0].startswith("warning: The history cannot be kept in")
    assert list(history.load_history_strings()) == []


# The pager


@pytest.mark.parametrize(
    ("value", "words"),
    [("", None), ("cat", None), ("nosuchpager -x", None), ("'", None), ("sh -c true", ["sh", "-c", "true"])],
)
def test_the_pager_is_chosen(monkeypatch: pytest.MonkeyPatch, value: str, words: list[str] | None) -> None:
    monkeypatch.setenv("PAGER", value)
    assert pager_command() == words


@pytest.mark.process
def test_long_results_go_through_the_pager(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    out = Terminal()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setenv("LINES", "10")
    monkeypatch.setenv("PAGER", f"sh -c 'cat > {tmp_path}/paged'")
    for lines, is_enabled in ((8, True), (9, False)):
        with paged(is_enabled=is_enabled) as stream:
            stream.write("x\n" * lines)
    assert out.getvalue() == "x\n" * 17 and not (tmp_path / "paged").exists()
    with paged(is_enabled=True) as stream:
        assert stream.isatty()
        stream.write("y\n" * 9)
    assert (tmp_path / "paged").read_text() == "y\n" * 9
    monkeypatch.setenv("PAGER", "true")  # reads nothing
    with paged(is_enabled=True) as stream:
        stream.write("y\n" * 100_000)
    assert out.getvalue() == "x\n" * 17


def test_watch_needs_a_statement_and_seconds(home: Path) -> None:
    cli = Cli()
    cli.given["home"], cli.progress = str(home), Silent()
    session = ShellSession(cli, is_interactive=True)
    for wrong in (ShellInput("watch", True), ShellInput("watch x", True, SQL), ShellInput("watch 0", True, SQL)):
        with pytest.raises(UsageError):
            run_input(session, wrong)
    assert session.options.has_pager
