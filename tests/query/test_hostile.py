"""SQL must not reach files, settings, extensions, other databases or the network. Every line here is refused, and each
of the three fences is tried alone too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from hybrid.errors import QueryError
from hybrid.query.ast_allow_list import check_statement
from hybrid.query.connection import locked_connection
from tests.query.halves import Halves
from tests.shared_duckdb import plain_duckdb

_FILE = Path(__file__).parents[1] / "sql" / "hostile.sql"
HOSTILE = [line for line in _FILE.read_text(encoding="utf-8").splitlines() if not line.startswith("--- ")]


@pytest.fixture(scope="module")
def halves(tmp_path_factory: pytest.TempPathFactory) -> Halves:
    from tests.query.halves import Row, orders_spec

    built = Halves.create(tmp_path_factory.mktemp("hostile"), orders_spec())
    built.commit_realtime([Row({"order_id": 1, "customer": "a", "amount": 1.0, "ts": 1}, 1, 0)])
    return built


@pytest.mark.parametrize("sql", HOSTILE)
def test_hostile_sql_is_refused(halves: Halves, ask: Callable[..., Any], tmp_path: Path, sql: str) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("s3cret\n1\n", encoding="utf-8")
    with pytest.raises(QueryError) as raised:
        ask(halves, sql.replace("FILE", str(secret)))
    assert "s3cret" not in str(raised.value)
    assert raised.value.pinot_code in {150, 190, 700, 710}, str(raised.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secret.csv"]


@pytest.mark.parametrize(
    ("limit", "words"), [("-1", "cannot be negative"), ("1.5", "whole"), ("2 offset 0.5", "whole")]
)
def test_limits_are_whole_numbers(halves: Halves, ask: Callable[..., Any], limit: str, words: str) -> None:
    """DuckDB rounds them."""
    with pytest.raises(QueryError, match=words):
        ask(halves, f"select * from orders limit {limit}")
    for whole in ("1 offset 0", "1.0", "(1e0)"):
        assert len(ask(halves, f"select * from orders limit {whole}").rows) == 1


def test_there_are_at_least_200() -> None:
    assert len(set(HOSTILE)) == len(HOSTILE) >= 200


def test_a_comment_behind_the_statement_is_nothing(halves: Halves, ask: Callable[..., Any]) -> None:
    assert ask(halves, "select * from orders; -- ; attach 'FILE'").rows


@pytest.mark.parametrize(
    "sql",
    [
        "select * from orders, read_text('x')",
        "select getenv('HOME') from t",
        "select current_setting('x')",
        "select * from 'x.csv'",
        "select * from other",
        "select * from main.t",
        "select 1; select 2",
        "attach 'x'",
        "copy t to 'x'",
        "select * from t at (version => 1)",
        "select list_transform([1], lambda x: nextval('s'))",
        "select * from (values (1)) v, range(3)",
        "select main.read_text('x') from t",
        "from (show tables)",
        "from (pivot t on a)",
    ],
)
def test_the_guard_alone_refuses(sql: str) -> None:
    with pytest.raises(QueryError):
        check_statement(plain_duckdb(), sql, ["t"])


@pytest.mark.parametrize(
    "sql",
    [
        "select sum(a) filter (where b > 1) over (partition by c) from t x join t y using (a) where a like 'x%'",
        "with a as (select * from t) select * from a union all select * from a order by 1 limit 2",
        "select * from t, unnest(t.tags) u(x) where x in (1, 2) and a between 1 and 2 and b is not null",
        "select case when a then 1 end, a::int, a[1], {'k': 1}, [1, 2], a || b, -a, not a, interval 1 day from t",
        "select extract(year from a), date_trunc('day', a), json_extract_string(a, '$.b'), a ->> 'b', a ~ 'x' from t",
        "select * from (values (1)) v(a), t where exists (select 1 from t) and a > all (select b from t)",
    ],
)
def test_the_guard_lets_plain_reading_pass(sql: str) -> None:
    check_statement(plain_duckdb(), sql, ["t"])


def test_the_connection_alone_reaches_nothing(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "a.csv").write_text("x\n1\n", encoding="utf-8")
    (tmp_path / "secret.csv").write_text("x\n1\n", encoding="utf-8")
    orders = object()  # a Python variable is no table
    connection = locked_connection([tmp_path / "open"])
    assert connection.execute(f"select * from '{tmp_path}/open/a.csv'").fetchall() == [(1,)]
    for sql in (
        f"select * from '{tmp_path}/secret.csv'",
        f"select * from '{tmp_path}/open/../secret.csv'",
        f"copy (select 1) to '{tmp_path}/x.csv'",
        f"attach '{tmp_path}/x.db'",
        "install httpfs",
        "load httpfs",
        "set threads = 1",
        "set enable_external_access = true",
        "reset allowed_directories",
        "select * from orders",
    ):
        with pytest.raises(duckdb.Error):
            connection.execute(sql)
    assert orders is not None
    connection.close()


def test_what_lies_on_disk_leaves_room_for_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from hybrid.query import connection as opened
    from hybrid.runtime import disk

    gib = 1024**3
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda path: SimpleNamespace(free=5 * gib))
    with locked_connection([tmp_path], spill=tmp_path / "spill") as connection:
        (found,) = connection.execute("select current_setting('max_temp_directory_size')").fetchall()
    assert opened.spill_bytes(tmp_path / "not" / "there") == 2 * gib and found == ("2.0 GiB",)
    monkeypatch.setattr(disk.shutil, "disk_usage", lambda path: SimpleNamespace(free=gib // 2))
    assert opened.spill_bytes(tmp_path) == 0


@pytest.mark.parametrize(
    "sql",
    [
        "select * from orders where order_id = " + "9" * 5000,
        "select substr('a', " + "9" * 400 + ") from orders",
        "select substr('a', 1e999) from orders",
        "select * from orders where ts > " + "9" * 5000,
        "select * from orders limit " + "9" * 5000,
        "SET timeoutMs = \u00b2; select * from orders",
        "SET timeoutMs = " + "9" * 5000 + "; select * from orders",
        "SET plan = '" + "a" * 5000 + "'; select * from orders",
        "SET plan = 'a\0b'; select * from orders",
        "SET asOf = '" + "9" * 5000 + "'; select * from orders",
        "select '\udcff' from orders",
        "select * from orders where customer = '\ud800'",
        'select "\udfff" from orders',
    ],
)
def test_a_value_that_nothing_can_hold_is_an_error_of_the_statement(
    halves: Halves, ask: Callable[..., Any], sql: str
) -> None:
    with pytest.raises(QueryError):
        ask(halves, sql)
