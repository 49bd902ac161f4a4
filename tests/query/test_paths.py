"""A home may lie in a folder whose name DuckDB would take for a pattern."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.lake.parquet_paths import paths_sql
from hybrid.query.connection import locked_connection
from hybrid.query.engine import QueryOptions, run
from tests.query.halves import KEY, Halves, ListTail, Row, orders_spec
from tests.query.stepped import SteppedCache

SQL = "select order_id from orders order by order_id"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["a*b", "a?b"])
def test_only_the_files_of_the_table_are_read(tmp_path: Path, name: str) -> None:
    tables = [Halves.create(tmp_path / folder, orders_spec()) for folder in (name, "a1b")]
    for number, halves in enumerate(tables):
        values = {"order_id": number, "customer": "c", "amount": 1.0, "ts": 5}
        halves.commit_realtime([Row(values, 5, 0)], offsets={KEY: 1})
    for file in (tmp_path / name).rglob("*.parquet"):  # names are unique, but homes are copied
        shutil.copy(file, tmp_path / "a1b" / file.relative_to(tmp_path / name))
    for number, halves in enumerate(tables):
        found = run(SQL, halves, QueryOptions(tail=ListTail()))
        cached = SteppedCache(halves, 1_632_700_000_000, ListTail()).ask(SQL)
        assert cached is not None and found.rows == cached.rows == [(number,)]


@pytest.mark.parametrize("name", ["a*b", "a?b", "a[1]b", "a\\b", "a\\b*c", "it's [!x]{1}**"])
def test_a_locked_connection_reads_this_folder_alone(tmp_path: Path, name: str) -> None:
    files = [tmp_path / folder / "f.parquet" for folder in (name, "a1b")]
    for file in files:
        file.parent.mkdir()
        pq.write_table(pa.table({"a": [file.parent.name]}), file)
    with locked_connection([tmp_path / name]) as connection:
        read = "SELECT a FROM read_parquet([{}])"
        assert connection.execute(read.format(paths_sql([str(files[0])]))).fetchall() == [(name,)]
        with pytest.raises(Exception, match="disabled by configuration"):
            connection.execute(read.format(paths_sql([str(files[1])])))
