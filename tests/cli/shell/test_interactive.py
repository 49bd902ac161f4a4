"""The shell as a person uses it, in a pseudo-terminal: on a home, and on a server."""

from __future__ import annotations

import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.api.hybrid import connect
from hybrid.errors import NotFoundError
from tests.cli.shell.pseudo_terminal import CTRL_C, CTRL_D, ENTER, PROMPT, TAB, UP, PseudoTerminal
from tests.serve.app import App, lay_orders

pytestmark = pytest.mark.process
# Nobody waits for its end: two rows, joined with themselves forty times.
ENDLESS = "select max(a.ts) x from orders_OFFLINE a" + "".join(f", orders_OFFLINE b{place}" for place in range(40))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with the table orders."""
    folder = tmp_path / "home"
    with connect(folder) as opened:
        lay_orders(opened)
    return folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[App]:
    """A server with the table orders."""
    app = App(tmp_path / "served")
    lay_orders(app.home)
    yield app
    app.close()


def test_a_session_on_a_home(home: Path, tmp_path: Path) -> None:
    pager = tmp_path / "paged"
    env = {"XDG_STATE_HOME": str(tmp_path / "state"), "PAGER": f"sh -c 'cat > {pager}; echo PAGED'"}
    with PseudoTerminal(["--home", str(home), "query"], env) as terminal:
        shown = terminal.expect(PROMPT)
        assert f"home {home}" in shown and "Ctrl-D leaves" in shown

        # Completion: of a table's half, then of a column; the statement runs as completed.
        terminal.type("select customer from orders_OFF")
        terminal.settle()
        terminal.type(TAB)
        terminal.settle(0.5)
        shown = terminal.run(" limit 1;")
        assert re.search(r"customer\n-+\nada\n1 row, \d+ ms\n", shown)
        terminal.type(".sch")
        terminal.settle()
        terminal.type(TAB)
        terminal.settle(0.5)
        assert "order_id" in terminal.run(" orders")

        # Several lines; a semicolon within quotes ends nothing. Ctrl-C leaves what is not finished.
        terminal.run("select 'a;b' x,", r"\.\.\.>")
        assert re.search(r"a;b\s+7\n", terminal.run("7 y from orders_OFFLINE limit 1;"))
        terminal.run("select 'unfinished", r"\.\.\.>")
        terminal.type(CTRL_C)
        terminal.expect(PROMPT)

        # An error has its place and ends only itself.
        shown = terminal.run("select nope from orders_OFFLINE; select 'not run' z;")
        assert "Column 'nope' does not exist at line 1, column 8." in shown
        assert "not run" not in shown.partition("error")[2]

        # Ctrl-C stops a statement; the next one runs.
        terminal.type(ENDLESS + ";")
        terminal.settle()
        terminal.type(ENTER)
        time.sleep(1.0)
        terminal.type(CTRL_C)
        assert "cancelled" in terminal.expect(PROMPT, 15)
        assert "\n2\n" in terminal.run("select count(*) n from orders_OFFLINE;")

        # \watch repeats until Ctrl-C.
        terminal.run("select 'tick' t from orders_OFFLINE limit 1 \\watch 0.2", r"Every 0.2 s.*tick.*Every 0.2 s.*tick")
        terminal.type(CTRL_C)
        terminal.expect(PROMPT)

        # Long results go through the pager, unless it is off. Ten rows are not shown without a word.
        long = "select t0.order_id from " + ", ".join(f"orders_OFFLINE t{place}" for place in range(5))
        assert "PAGED" in terminal.run(f"{long} limit 32;") and len(pager.read_text().splitlines()) == 34
        terminal.run(".pager off")
        shown = terminal.run(f"{long} limit 32;")
        assert "PAGED" not in shown and "32 rows" in shown
        assert "Only the first 10 rows are shown" in terminal.run(f"{long};")

        # A secret and a line that begins with a space are not written to the history.
        terminal.run(" select 'spaced' s;")
        terminal.run("select 1 x where 'a' = 'password=hidden';")
        terminal.type(CTRL_D)
        assert terminal.end() == 0
        assert "\x1b[0;34;1mselect" in terminal.raw or "34" in terminal.raw
    history = tmp_path / "state" / "hybrid" / "shell_history"
    assert stat.S_IMODE(history.stat().st_mode) == 0o600
    written = history.read_text()
    assert "+7 y from orders_OFFLINE limit 1;" in written and "spaced" not in written and "hidden" not in written


def test_a_session_on_a_server(server: App, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    state = tmp_path / "state" / "hybrid"
    state.mkdir(parents=True)
    (state / "shell_history").write_text("\n# 2026\n+select 'from history' h;\n")
    args = ["--home", str(elsewhere), "--server", server.url, "shell"]
    with PseudoTerminal(args, {"XDG_STATE_HOME": str(tmp_path / "state"), "NO_COLOR": "1"}) as terminal:
        assert f"server {server.url}" in terminal.expect(PROMPT)
        terminal.type("select order_id from orders_OFF")
        terminal.settle()
        terminal.type(TAB)
        terminal.settle(1.0)
        assert re.search(r"\n +1\n +2\n2 rows, ", terminal.run(";"))
        assert "orders[OFFLINE=1 " in terminal.run(".revision")

        # The statement ends at the server, not only here.
        terminal.type(ENDLESS + ";")
        terminal.settle()
        terminal.type(ENTER)
        queries = server.app.state.context.queries
        assert _becomes(lambda: bool(queries._running))
        time.sleep(0.3)
        terminal.type(CTRL_C)
        assert "cancelled" in terminal.expect(PROMPT, 15)
        assert _becomes(lambda: not queries._running)
        with pytest.raises(NotFoundError):
            queries.cancel("any")

        # The history of an earlier session; no colours.
        terminal.type(UP * 4)
        terminal.settle()
        assert "from history" in terminal.run("")
        terminal.run("exit", r"\Z")
        assert terminal.end() == 0
        assert not re.search(r"\x1b\[[\d;]*3[0-7][\d;]*m", terminal.raw)


def test_a_home_that_does_not_exist_opens_no_shell(tmp_path: Path) -> None:
    with PseudoTerminal(["--home", str(tmp_path / "none"), "shell"], {"XDG_STATE_HOME": str(tmp_path)}) as terminal:
        terminal.expect(r"does\s+not\s+exist")
        assert terminal.end() == 1


def _becomes(condition, timeout_s: float = 10.0) -> bool:
    until = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True
