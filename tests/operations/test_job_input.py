"""Jobs over the rows of a statement: the whole answer, from one revision, and nothing that has changed since."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.clock import wall_clock_ms
from hybrid.config.job_spec import AnsweredStatement, JobSpec
from hybrid.config.settings import load_settings
from hybrid.errors import ConflictError, DataError, UsageError
from hybrid.lake.commit_context import CommitContext
from hybrid.operations.job_input import GivenToJob, run_given
from hybrid.progress import Silent
from hybrid.replace.job_options import JobOptions
from hybrid.replace.lineage import list_replacements
from hybrid.replace.plan import refuse_outdated

NOON_MS = 1_600_000_000_000
SCHEMA = {
    "schemaName": "t",
    "dimensionFieldSpecs": [{"name": "id", "dataType": "INT"}],
    "metricFieldSpecs": [{"name": "amount", "dataType": "DOUBLE"}],
    "dateTimeFieldSpecs": [
        {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
    ],
}
CONFIG: dict[str, Any] = {"tableName": "t", "tableType": "OFFLINE", "segmentsConfig": {"timeColumnName": "ts"}}
JOB = """
jobType: SegmentCreationAndTarPush
inputDirURI: in
recordReaderSpec: {dataFormat: json}
tableSpec: {tableName: t}
"""


def _job(statement: AnsweredStatement | None = None, names: str = "simple") -> JobSpec:
    more: dict[str, Any] = {"statement": statement, "segment_name_type": names}
    return JobSpec("job.yml", "SegmentCreation", Path("/in"), "t", "json", **more)


@pytest.mark.spark
def test_the_rows_of_a_statement_are_the_input(tmp_path: Path, workbench: CommitContext) -> None:
    api = Hybrid(load_settings(home=tmp_path / "home"), Silent())
    vars(api)["bench"] = CommitContext(lambda: workbench.spark, wall_clock_ms, Silent())
    api.create_table(TableDocuments((SCHEMA, "schema.json"), [(CONFIG, "table.json")]))
    spec, rows = tmp_path / "job.yml", tmp_path / "in" / "rows.json"
    spec.write_text(JOB)
    rows.parent.mkdir()
    rows.write_text("".join(json.dumps({"id": n, "amount": n, "ts": NOON_MS + n}) + "\n" for n in range(12)))
    api.run_job(spec, {})
    sql = "select id, ts, amount * 2 as amount from t where id <> 5"
    report = api.run_job(spec, {}, sql=sql, covers="day")
    assert (report.rows_before, report.rows_after) == (12, 11), "Pinot's default LIMIT does not hold"
    assert api.query("select sum(amount) from t").rows == [(2.0 * (66 - 5),)]
    (source,) = list_replacements(api.context.layout("t"))[0].lineage.inputs
    assert source["sql"] == sql and source["revision"] == "t[OFFLINE=1]" and source["path"] is None
    api.run_job(spec, {}, sql=f"SET asOf = 't[OFFLINE=1]'; {sql.replace(' * 2', '')}", covers="day")
    assert api.query("select sum(amount) from t").rows == [(66.0 - 5,)], "rows of an old revision are no outdated ones"
    assert list((api.context.layout("t").root / "staging").glob("query-*")) == []
    with pytest.raises(UsageError, match="gives column 'id' twice"):
        api.run_job(spec, {}, sql="select id, id from t")
    with pytest.raises(DataError) as caught:
        api.run_job(spec, {}, sql="select id, null as ts, amount from t where id < 2")
    assert [str(error) for error in caught.value.all()] == [
        "--sql: the answer, row 1 (row group 0): time column 'ts' has no value. Nothing was changed.",
        "--sql: the answer, row 2 (row group 0): time column 'ts' has no value.",
    ]
    assert caught.value.hint == "Correct the statement."
    api.close()


def test_a_half_that_has_changed_since_is_not_written() -> None:
    spec: Any = SimpleNamespace(name="t")
    half: Any = SimpleNamespace(version=7)
    refuse_outdated(spec, _job(), half)
    refuse_outdated(spec, _job(AnsweredStatement("select 1", "", None)), half)
    refuse_outdated(spec, _job(AnsweredStatement("select 1", "", 7)), half)
    with pytest.raises(ConflictError, match="version 6 was read, and 7 is the newest"):
        refuse_outdated(spec, _job(AnsweredStatement("select 1", "", 6)), half)


def test_what_does_not_go_together(tmp_path: Path) -> None:
    assert GivenToJob().input_dir("x") == "x" and GivenToJob(sql="select 1").input_dir(None) == "."
    with pytest.raises(UsageError, match="--sql and --input both say"):
        GivenToJob(sql="select 1").input_dir("x")
    home: Any = SimpleNamespace(table=lambda name: None)
    with pytest.raises(UsageError, match="'inputFile' names segments by files"):
        run_given(home, _job(names="inputFile"), GivenToJob(sql="select 1"), JobOptions())
