"""The fence of a half: whoever planned before another operation's commit does not commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.config.table_config import Half
from hybrid.errors import OvertakenError
from hybrid.lake.commit import FileAct, Written, commit_files
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.create import create_half
from hybrid.lake.layout import fence_of, physical_columns
from hybrid.lake.log import open_half
from hybrid.lake.log_entries import fence_at, own_states
from hybrid.table.state import Act, RealtimeState
from tests.every_type import every_type
from tests.lake.test_files import row, write

pytestmark = pytest.mark.spark


@pytest.fixture
def half(tmp_path: Path) -> Path:
    create_half(tmp_path / "REALTIME", every_type(), Half.REALTIME, RealtimeState(Act("create-0", 0, "create", "x")))
    return tmp_path / "REALTIME"


def act(half: Path, name: str) -> FileAct:
    return FileAct(half, "ingest", name, physical_columns(every_type(), Half.REALTIME))


def numbered(number: int, name: str) -> RealtimeState:
    return RealtimeState(Act(name, number, "ingest", "x"))


def test_a_commit_between_the_read_and_the_commit_of_another_is_noticed(half: Path, workbench: CommitContext) -> None:
    """Both only append, which Delta itself would allow: the fence alone tells."""
    spark, spec = workbench.spark, every_type()
    state = numbered(1, "late")

    def write_while_another_commits() -> Written:
        commit_files(spark, act(half, "first"), lambda: Written([write(half, spec, [row(0)], "first")], state))
        return Written([write(half, spec, [row(1)], "late")], state)

    with pytest.raises(OvertakenError):
        commit_files(spark, act(half, "late"), write_while_another_commits)
    assert open_half(half).version == 1
    assert [path.name[:10] for path in half.glob("*/*.parquet")] == ["part-first"]


def test_an_outdated_number_is_refused_though_the_log_was_cleaned(half: Path, workbench: CommitContext) -> None:
    """Foreign commits alone are left in the log: the checkpoint still holds the fence."""
    spark = workbench.spark
    for number in (1, 2):
        commit_files(spark, act(half, f"a{number}"), lambda n=number: Written([], numbered(n, f"a{n}")))
    spark.sql(f"ALTER TABLE delta.`{half}` SET TBLPROPERTIES ('theirs' = 'yes')")
    log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(half))
    log.checkpoint(log.unsafeVolatileSnapshot(), spark._jvm.scala.Option.empty())
    for version in range(3):
        (half / "_delta_log" / f"{version:020d}.json").unlink()
    assert list(own_states(half, 3)) == []
    with pytest.raises(OvertakenError):
        commit_files(spark, act(half, "b2"), lambda: Written([], numbered(2, "b2")))
    commit_files(spark, act(half, "b3"), lambda: Written([], numbered(3, "b3")))
    assert [state.act.id for _, state in own_states(half, 4)] == ["b3"]


def test_a_foreign_commit_before_that_of_another_hides_nothing(half: Path, workbench: CommitContext) -> None:
    spark, spec = workbench.spark, every_type()

    def write_while_others_commit() -> Written:
        rows = spark.read.format("delta").load(str(half)).limit(0)
        rows.write.format("delta").mode("append").save(str(half))
        commit_files(spark, act(half, "first"), lambda: Written([], numbered(1, "first")))
        return Written([write(half, spec, [row(1)], "late")], numbered(1, "late"))

    with pytest.raises(OvertakenError):
        commit_files(spark, act(half, "late"), write_while_others_commit)
    assert open_half(half).version == 2


def test_an_outdated_number_is_refused_below_foreign_commits(half: Path, workbench: CommitContext) -> None:
    """Also where a commit of ours can no longer be read as ours: its `txn` action tells."""
    spark = workbench.spark
    commit_files(spark, act(half, "a1"), lambda: Written([], numbered(1, "a1")))
    spark.sql(f"ALTER TABLE delta.`{half}` SET TBLPROPERTIES ('theirs' = 'yes')")
    entry = half / "_delta_log" / f"{1:020d}.json"
    entry.write_text(entry.read_text().replace('\\"act\\"', '\\"deed\\"'))
    assert [state.act.number for _, state in own_states(half, 2)] == [0]
    with pytest.raises(OvertakenError):
        commit_files(spark, act(half, "b1"), lambda: Written([], numbered(1, "b1")))


def test_the_fence_in_the_log(half: Path, workbench: CommitContext) -> None:
    assert fence_at(half, 0, fence_of(half)) == -1
    commit_files(workbench.spark, act(half, "a1"), lambda: Written([], numbered(1, "a1")))
    assert (fence_at(half, 1, fence_of(half)), fence_at(half, 1, "theirs"), fence_at(half, 2, "x")) == (1, -1, None)
