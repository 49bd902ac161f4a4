"""Texts that are not UTF-8 in a flow's rows, which Spark does not check: the row is rejected, with its bytes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.flow.declared.conftest import FlowHome
from tests.unchecked_texts import LATIN1, nested_texts

SQL = """CREATE STREAMING TABLE t;
CREATE FLOW f AS INSERT INTO t BY NAME
SELECT *, if(id = 9, CAST(unhex('e9') AS STRING), 'x') AS made
FROM STREAM read_files('{folder}', format => 'parquet')"""
GOOD = [b"a", b"\xc3\xa9"]


@pytest.mark.spark
def test_they_are_rejected_wherever_they_stand(spark_home: FlowHome, tmp_path: Path) -> None:
    good = pa.table({"id": [1, 2], **nested_texts(GOOD)})
    names = good.column_names[1:]
    tables = [good]
    for number, name in enumerate(names, 3):
        tables.append(good.slice(0, 1).set_column(0, "id", pa.array([number])))
        bad = nested_texts([LATIN1])[name].cast(good.schema.field(name).type)
        tables[-1] = tables[-1].set_column(names.index(name) + 1, name, bad)
    tables.append(good.slice(0, 1).set_column(0, "id", pa.array([9])))
    (tmp_path / "in").mkdir()
    pq.write_table(pa.concat_tables(tables), tmp_path / "in" / "a.parquet")
    report = spark_home.run(SQL.format(folder=tmp_path / "in"), "f.sql")["f"]
    assert (report.state, report.rows, report.rejected) == ("DONE", 2, len(names) + 1)
    assert spark_home.rows("select id, text, list, record from t order by id") == [
        (1, "a", ["a"], '{"n":0,"t":"a"}'),
        (2, "é", ["é"], '{"n":1,"t":"é"}'),
    ]
    reasons = [one["reason"] for one in spark_home.api.table("t").rejected()]
    assert reasons[0] == f"column 'text': a text is not UTF-8: hex:{LATIN1.hex()}"
    assert [reason.split("'")[1] for reason in reasons] == [*names, "made"]
    assert all(LATIN1.hex() in reason for reason in reasons[:-1]) and reasons[-1].endswith("hex:e9")
