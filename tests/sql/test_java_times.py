"""Time functions against java.time in a Java machine: all zones, 1900 to 2100, many of the cases at changes of clocks.

`HYBRID_TIME_CASES=100000` asks more of them. A zone whose table DuckDB has from another year's database than Java is
left out, and no more than a few are.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import pytest

from hybrid.schema.datepattern import compile_pattern
from hybrid.sql.functions import rewrite_functions
from hybrid.sql.statement import parse_statement
from hybrid.sql.times import TimeContext

ORACLE = Path(__file__).parent / "java" / "TimeOracle.java"
CASES = int(os.environ.get("HYBRID_TIME_CASES", "2000"))
FROM_S, TO_S = -2_208_988_800, 4_102_444_800
MARGIN_S = 400 * 86_400  # the year of an instant may begin before 1900
UNITS = ("MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "QUARTER", "YEAR")
STEPS = ("MILLISECONDS", "SECONDS", "MINUTES", "HOURS", "DAYS")
STEP_MS = {"MILLISECONDS": 1, "SECONDS": 1000, "MINUTES": 60_000, "HOURS": 3_600_000, "DAYS": 86_400_000}
PARTS = (
    "YEAR", "QUARTER", "MONTH", "WEEK", "YEAROFWEEK", "DAY", "DAYOFYEAR", "DAYOFWEEK", "HOUR", "MINUTE", "SECOND",
    "MILLISECOND",
)  # fmt: skip
WRITTEN = (
    "yyyy-MM-dd HH:mm:ss.SSS", "yyyyMMdd'T'HHmm", "yyyy-MM-dd'T'HH:mm:ssXXX", "d.M.yyyy H:m:s", "MMM d, yyyy hh:mm a",
    "EEE MMMM dd yyyy", "HH:mm:ss.S", "ss.SS", "ss.SSSSSS", "yyyy-MM-dd HH:mm XX", "yyyy DDD", "HH Z",
)  # fmt: skip
READ = ("yyyy-MM-dd HH:mm:ss", "yyyy-MM-dd HH:mm:ss.SSS", "yyyyMMddHHmm", "d.M.yyyy H:m", "yyyy-MM-dd hh:mm a")

pytestmark = pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java machine")


@pytest.fixture(scope="module")
def zones() -> dict[str, list[int]]:
    """Each zone on which Java and DuckDB agree, and the instants (s) at which its clocks change."""
    lines = [line.split("\t") for line in _java("zones", ())]
    found = {}
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for name, first, changes in lines:
            pairs = [(int(at), int(offset)) for at, _, offset in (change.partition(":") for change in changes.split())]
            if _agrees(connection, name, int(first), pairs):
                found[name] = [at for at, _ in pairs]
    assert len(found) > len(lines) * 0.9, sorted({line[0] for line in lines} - set(found))
    return found


def _agrees(connection: duckdb.DuckDBPyConnection, name: str, offset: int, pairs: Sequence[tuple[int, int]]) -> bool:
    begins, offsets = [FROM_S, *(at for at, _ in pairs)], [offset, *(after for _, after in pairs)]
    # Between Java's changes, too: DuckDB's database may have one there that Java's has not.
    sql = f"""
        SELECT bool_and(CAST(epoch(timezone('{name}', make_timestamptz(p * 1000000))) AS BIGINT) - p = o)
        FROM (SELECT unnest(list_append(range(b, e, 20 * 86400), e - 1)) AS p, o
              FROM (SELECT unnest(?) AS b, unnest(?) AS e, unnest(?) AS o))"""
    row = connection.execute(sql, [begins, [*begins[1:], TO_S], offsets]).fetchone()
    assert row is not None
    return bool(row[0])


def _java(mode: str, lines: Iterable[str]) -> list[str]:
    command = ["java", "-XX:TieredStopAtLevel=1", str(ORACLE), mode]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True, timeout=300)
    return done.stdout.splitlines()


def _moment(chance: random.Random, changes: Sequence[int]) -> int:
    """An instant (ms); half of them near a change of clocks."""
    inside = [at for at in changes if FROM_S + MARGIN_S < at < TO_S - MARGIN_S]
    if inside and chance.random() < 0.6:
        return chance.choice(inside) * 1000 + chance.choice((0, -1, 1, chance.randint(-90_000_000, 90_000_000)))
    return chance.randint((FROM_S + MARGIN_S) * 1000, (TO_S - MARGIN_S) * 1000)


def _case(chance: random.Random, zones: dict[str, list[int]]) -> tuple[str, str]:
    """What Java is asked, and the expression that we are."""
    zone = chance.choice(list(zones))
    ms = _moment(chance, zones[zone])
    kind = chance.choice(("trunc", "trunc", "part", "write", "read", "read", "convert", "bucket", "epochs"))
    if kind == "trunc":
        unit, source, target = chance.choice(UNITS), chance.choice(STEPS[:3]), chance.choice(STEPS)
        count = ms // STEP_MS[source]
        call = f"DATETRUNC('{unit}', {count}, '{source}', '{zone}', '{target}')"
        return f"trunc\t{unit}\t{count}\t{source}\t{target}\t{zone}", call
    if kind == "part":
        name = chance.choice(PARTS)
        zone = "UTC" if name == "MILLISECOND" else zone
        return f"part\t{name}\t{ms}\t{zone}", f"{name}({ms})" if zone == "UTC" else f"{name}({ms}, '{zone}')"
    if kind == "write":
        pattern = chance.choice(WRITTEN)
        return f"write\t{ms}\t{zone}\t{pattern}", f"TODATETIME({ms}, {_quoted(pattern)}, '{zone}')"
    if kind == "read":
        pattern = chance.choice(READ)
        written = _local_text(ms, zone, pattern, chance)
        return f"read\t{written}\t{zone}\t{pattern}", f"FROMDATETIME('{written}', {_quoted(pattern)}, '{zone}')"
    source, target, count = chance.choice(STEPS), chance.choice(STEPS), chance.randint(1, 12)
    if kind == "convert":
        number = ms // STEP_MS[source]
        return f"convert\t{number}\t{source}\t{target}", f"TIMECONVERT({number}, '{source}', '{target}')"
    if kind == "bucket":
        unit, pattern = chance.choice(STEPS[1:]), chance.choice(("yyyy-MM-dd HH:mm:ss", "yyyyMMdd HH", "yyyy-MM-dd"))
        count = 1 if unit == "DAYS" else count
        out = chance.choice((f"1:DAYS:SIMPLE_DATE_FORMAT:{pattern} tz({zone})", f"SIMPLE_DATE_FORMAT|{pattern}|{zone}"))
        call = f"DATETIMECONVERT({ms}, '1:MILLISECONDS:EPOCH', '{out}', '{count}:{unit}')"
        return f"bucket\t{ms}\t{zone}\t{count}\t{unit}\t{pattern}", call
    call = f"DATETIMECONVERT({ms}, 'EPOCH|MILLISECONDS', '1:{target}:EPOCH', '{count}:{source}')"
    return f"epochs\t{ms}\t{target}\t{count}\t{source}", call


def _local_text(ms: int, zone: str, pattern: str, chance: random.Random) -> str:
    """A local time near the instant, in a zone that has it once, twice or not at all."""
    offsets = (0, 3_600, -3_600, 7_200, -18_000, 19_800, 28_800, -28_800, 34_200)
    local = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms, seconds=chance.choice(offsets))
    return compile_pattern(pattern).format(local)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


@pytest.mark.process
@pytest.mark.timeout(3600)
def test_time_functions_agree_with_java(zones: dict[str, list[int]]) -> None:
    chance = random.Random(20_231_105)
    cases = [_case(chance, zones) for _ in range(CASES)]
    wanted = _java("ask", (asked for asked, _ in cases))
    wrong = []
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for start in range(0, len(cases), 100):
            part = cases[start : start + 100]
            got = _ask(connection, [call for _, call in part])
            answers = zip(part, wanted[start : start + 100], got, strict=True)
            wrong += [(call, java, ours) for (_, call), java, ours in answers if java != str(ours)]
    assert not wrong, f"{len(wrong)} of {len(cases)} differ: {wrong[:20]}"


def _ask(connection: duckdb.DuckDBPyConnection, calls: Sequence[str]) -> tuple[object, ...]:
    tree = parse_statement(f"select {', '.join(calls)}").tree
    rewrite_functions(tree, TimeContext(0, {}))
    row = connection.execute(tree.sql("duckdb")).fetchone()
    assert row is not None
    return tuple(row)
