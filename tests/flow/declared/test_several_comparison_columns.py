"""A flow's rows have a value in just one of several comparison columns, as those of a stream do."""

from __future__ import annotations

import pytest

from hybrid.flow.declared.convert import stored_rows
from hybrid.lake.commit_context import CommitContext
from tests.table.test_folding_rows import several

pytestmark = pytest.mark.spark


def test_others_are_rejected(workbench: CommitContext) -> None:
    rows = [(1, 5, 1, None), (2, 5, None, 0), (3, 5, None, None), (4, 5, 1, 2)]
    frame = workbench.spark.createDataFrame(rows, "order_id int, ts bigint, v1 bigint, v2 bigint")
    found = {row["order_id"]: row["_hy_reason"] for row in stored_rows(frame, several()).collect()}
    reason = "a row has a value in just one of the comparison columns 'v1' and 'v2'"
    assert found == {1: None, 2: None, 3: reason, 4: reason}
