"""What a flow need not ask Spark for: the columns of files that it knows, and the numbers of rows that it staged."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql.types import IntegerType, StructType

from hybrid.flow.declared.inference import InferredColumns
from hybrid.flow.declared.listing import SourceFile
from hybrid.flow.declared.options import DeclaredFileSource
from hybrid.flow.declared.stage import _counts
from hybrid.table.columns import REASON


def test_columns_are_inferred_again_only_of_other_files_and_sources() -> None:
    columns, asked = InferredColumns(), list[int]()
    json, csv = (DeclaredFileSource("/in", kind, streaming=True) for kind in ("json", "csv"))
    file = SourceFile(1, "/in/a", 10)

    def infer() -> StructType:
        asked.append(len(asked))
        return StructType().add(f"c{len(asked)}", IntegerType())

    first = columns.of(json, [file], infer)
    assert columns.of(json, [file], infer) is first and len(asked) == 1
    changed = (SourceFile(2, "/in/a", 10), SourceFile(1, "/in/a", 11), SourceFile(1, "/in/b", 10))
    for source, files in (*((json, [other]) for other in changed), (csv, [file]), (json, [file, file])):
        assert columns.of(source, files, infer) is not first, (source, files)
    assert len(asked) == 6


@pytest.mark.parametrize("statistics", [True, False])
def test_rows_of_staged_parts_are_counted(tmp_path: Path, statistics: bool) -> None:
    """Parts of two files and of several row groups; one has no row. Columns of lists stand before the reason."""
    parts = {"a": (0, [None, "bad", None]), "b": (3, ["bad"] * 5), "c": (3, [None, None]), "d": (7, [])}
    for name, (part, reasons) in parts.items():
        table = pa.table(
            {
                "tags": pa.array([["x", "y"]] * len(reasons), pa.list_(pa.string())),
                REASON: pa.array(reasons, pa.string()),
                "_hy_part": pa.array([part] * len(reasons), pa.int64()),
            }
        )
        pq.write_table(table, tmp_path / f"{name}.parquet", row_group_size=2, write_statistics=statistics)
    assert _counts(tmp_path) == {0: (3, 1), 3: (7, 5)}
