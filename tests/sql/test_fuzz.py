"""Any text at all is answered with rows or with a QueryError, within its time, and reaches nothing but the tables.

`FUZZ_S` is how long it goes on (600 for a thorough run), `FUZZ_SEED` which statements are made.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hybrid.errors import QueryError
from hybrid.query.engine import QueryOptions, run
from hybrid.sql import aggregates, arithmetic, functions, times
from hybrid.sql.allowed import CALLABLE
from tests.parity.fixtures import fixtures
from tests.parity.table import NOW_MS, parity_table
from tests.sql.fuzzer import Fuzzer

FUZZ_S = float(os.environ.get("FUZZ_S", "5"))
SEED = int(os.environ.get("FUZZ_SEED", "1"))
TIMEOUT_MS = 1000
# What a loaded machine may add: reading the text, and one value that DuckDB is in the middle of.
SLACK_S = 10.0
SECRET = "s3cret-of-the-fuzzer"
_HOSTILE = Path(__file__).with_name("hostile.sql")


def known(secret: Path) -> list[str]:
    lines = _HOSTILE.read_text(encoding="utf-8").splitlines()
    hostile = [line.replace("FILE", str(secret)) for line in lines if not line.startswith("--- ")]
    # A statement's own timeout comes before ours: here all have the same.
    plain = [one.sql.replace("20000", str(TIMEOUT_MS)) for one in fixtures()]
    return [*plain, *plain, *hostile]


@pytest.mark.slow
@pytest.mark.timeout(FUZZ_S + 120)
def test_any_text_is_answered_or_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, tail = parity_table(tmp_path / "warehouse")
    place = tmp_path / "place"
    place.mkdir()
    secret = place / "secret.csv"
    secret.write_text(f"a\n{SECRET}\n", encoding="utf-8")
    monkeypatch.chdir(place)
    monkeypatch.setenv("HYBRID_SECRET_OF_THE_FUZZER", SECRET)
    before = sorted((path, path.stat().st_size) for path in tmp_path.rglob("*"))
    names = [*CALLABLE, *aggregates.RULES, *times.RULES, *functions.SCALARS, *arithmetic.NAMES]
    fuzzer = Fuzzer(SEED, known(secret), sorted(names))
    options = QueryOptions(tail=tail, timeout_ms=TIMEOUT_MS, now_ms=lambda: NOW_MS)
    deadline, made, answered = time.monotonic() + FUZZ_S, 0, 0
    while time.monotonic() < deadline:
        sql, made = fuzzer.statement(), made + 1
        if "timeoutms" in sql.lower() and str(TIMEOUT_MS) not in sql:
            continue  # its own timeout was changed: it may take longer
        started = time.monotonic()
        try:
            found = run(sql, table, options)
        except QueryError as error:
            said = str(error)
        except BaseException as error:
            raise AssertionError(f"seed {SEED}, statement {made}: {type(error).__name__}: {error}\n{sql}") from error
        else:
            said, answered = repr(found.rows), answered + 1
        assert time.monotonic() - started < TIMEOUT_MS / 1000 + SLACK_S, f"{sql}\ntook too long"
        assert SECRET not in said, sql
    assert sorted((path, path.stat().st_size) for path in tmp_path.rglob("*")) == before
    assert answered > 0 or made < 50
