"""Each kind of table on both engines: rows of both halves and the tail, keys, deletes, combined rows, older files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.errors import QueryError
from hybrid.lake.commit_context import CommitContext
from hybrid.query.tail import NoTail
from hybrid.schema.schema import FieldKind, FieldSpec
from hybrid.schema.types import DataType
from hybrid.table.boundary import Boundary
from tests.query.conftest import NOW_MS
from tests.query.halves import KEY, Halves, ListTail, orders_spec
from tests.query.spark_engine.both_engines import BothEngines
from tests.query.test_cases import message, row
from tests.query.views.test_views import TABLES

pytestmark = [pytest.mark.spark, pytest.mark.slow]
WHOLE = "select * from orders limit 100000"
FACES = "select 'r' as face, * from orders_REALTIME union all select 'o' as face, * from orders_OFFLINE limit 100000"
PLACES = (
    "select $segmentName, $partition, $offset, $docId, order_id from orders where order_id between 1 and 4 limit 100000"
)
# Rows that are not committed yet: a new key, a new version of one, a late row.
BEYOND = [message(7, 700, 100, "new"), message(1, 900, 101, "newer"), message(2, 1, 102, "late")]
Tails = {"append": BEYOND, "upsert": BEYOND, "dedup": BEYOND, "pinot": BEYOND, "folds": BEYOND, "evolved": BEYOND}


@pytest.fixture
def both(workbench: CommitContext) -> Callable[..., BothEngines]:
    return lambda halves, tail=None: BothEngines(lambda: workbench, halves, tail or NoTail(), NOW_MS)


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_of_each_kind(both: Callable[..., BothEngines], tmp_path: Path, kind: str) -> None:
    make, as_of = TABLES[kind]
    engines = both(make(tmp_path), ListTail(Tails[kind]) if kind in Tails else None)
    option = f"set asOf = '{as_of}'; " if as_of is not None else ""
    places = PLACES.replace("$docId, ", "") if kind == "nets" else PLACES
    engines.compare_all(f"{option}{sql}" for sql in (WHOLE, FACES, places))
    assert (engines.differing, engines.refused, engines.failed) == ([], {}, [])
    found = engines.answer(f"{option}{WHOLE}", "spark")
    assert not isinstance(found, QueryError)
    assert len(found.rows) > 0 or kind == "empty"


@pytest.mark.parametrize("null_handling", [False, True])
def test_columns_that_older_files_lack_show_their_default_or_null(
    both: Callable[..., BothEngines], tmp_path: Path, null_handling: bool
) -> None:
    halves = TABLES["evolved"][0](tmp_path)
    halves.spec = replace(halves.spec, null_handling=null_handling)
    engines = both(halves)
    engines.compare_all([WHOLE, "select count(*) from orders where laterint is null or lastint is null"])
    assert (engines.differing, engines.refused, engines.failed) == ([], {}, [])


WIDER = {
    "n": (DataType.LONG, pa.int32(), 2**31 - 1),
    "x": (DataType.DOUBLE, pa.int32(), -7),
    "y": (DataType.DOUBLE, pa.float32(), 0.5),
    "p": (DataType.BIG_DECIMAL, pa.int32(), 12),
    "q": (DataType.BIG_DECIMAL, pa.int64(), 2**53 + 1),
}


def test_files_with_narrower_types(both: Callable[..., BothEngines], tmp_path: Path) -> None:
    extra = [FieldSpec(name, kind, FieldKind.DIMENSION) for name, (kind, _, _) in WIDER.items()]
    halves = Halves.create(tmp_path, orders_spec(extra=extra))
    values: dict[str, Any] = {
        name: Decimal(value) if kind is DataType.BIG_DECIMAL else value for name, (kind, _, value) in WIDER.items()
    }
    halves.commit_realtime([row(1, 10, 0, values=values)], offsets={KEY: 1})
    for path in halves.layout.root.rglob("*.parquet"):
        stored = pq.ParquetFile(path).read()
        for name, (_, narrow, _) in WIDER.items():
            place = stored.schema.get_field_index(name)
            stored = stored.set_column(place, pa.field(name, narrow), stored.column(name).cast(narrow))
        pq.write_table(stored, path)
    halves.commit_realtime([row(2, 20, 1, values={**values, "n": 5})], offsets={KEY: 2})
    engines = both(halves)
    engines.compare_all([WHOLE, "select sum(n), sum(x), sum(y), sum(p), sum(q) from orders where n > 5"])
    assert (engines.differing, engines.refused, engines.failed) == ([], {}, [])


def test_each_row_once_across_the_boundary(both: Callable[..., BothEngines], tmp_path: Path) -> None:
    """Moved rows are in both halves, a late one in REALTIME alone, and one more in the tail."""
    halves = Halves.create(tmp_path, orders_spec())
    rows = [row(n, n * 10, n) for n in range(6)]
    halves.commit_realtime(rows, offsets={KEY: 6})
    halves.commit_offline([replace(one, segment="o") for one in rows[:3]], Boundary(30, {KEY: 6}))
    halves.commit_realtime([row(6, 5, 6)], offsets={KEY: 7})
    engines = both(halves, ListTail([message(7, 7, 7)]))
    found = engines.answer("select order_id, count(*) from orders group by 1 order by 1 limit 100", "spark")
    assert not isinstance(found, QueryError)
    assert found.rows == [(number, 1) for number in range(8)]
    assert str(
        found.revision
    ) == "orders[OFFLINE=1 REALTIME=2 boundary=1970-01-01T00:00:00.030Z{kafka/orders/0/0@6}" + (
        " tail={kafka/orders/0/0@8}]"
    )
    assert found.source == "files"


def test_folders_with_signs_of_patterns(both: Callable[..., BothEngines], tmp_path: Path) -> None:
    halves = Halves.create(tmp_path / "a*b", orders_spec())
    halves.commit_realtime([row(1, 10, 0), row(2, 20, 1, segment="orders__0__1__ü%2")], offsets={KEY: 2})
    engines = both(halves)
    assert engines.compare("select * from orders order by order_id", ordered=True) == "equal", engines.differing
    assert "it reads its name otherwise" in str(engines.answer("select $segmentName from orders", "spark"))
