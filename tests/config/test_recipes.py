"""The recipe files of the repository are read as they are, without a warning."""

from pathlib import Path

import pytest

from hybrid.config.job_spec import load_job_spec
from hybrid.config.overrides import load_json
from hybrid.config.table_config import MergeType, TableSpec
from hybrid.config.table_json import parse_table
from hybrid.records.decode import Decoded, Decoder

ROOT = Path(__file__).parents[2]


def recipe(name: str) -> TableSpec:
    folder = ROOT / "data" / name
    configs = [(load_json(folder / file), file) for file in ("orders_table.json", "orders_offline_table.json")]
    return parse_table(load_json(folder / "orders_schema.json"), "orders_schema.json", configs)


@pytest.mark.parametrize(("name", "merge_type"), [("orders", MergeType.CONCAT), ("orders_upsert", MergeType.LATEST)])
def test_tables(name: str, merge_type: MergeType) -> None:
    spec = recipe(name)
    assert spec.warnings == () and spec.move is not None and spec.move.merge_type is merge_type


@pytest.mark.parametrize("name", ["orders", "orders_upsert"])
@pytest.mark.parametrize("file", ["events.jsonl", "corrected/orders.json"])
def test_rows(name: str, file: str) -> None:
    decoder = Decoder(recipe(name))
    lines = (ROOT / "data" / name / file).read_bytes().splitlines()
    assert lines and all(isinstance(decoder.decode(line), Decoded) for line in lines)


@pytest.mark.parametrize("name", ["orders", "orders_upsert"])
def test_jobs(name: str) -> None:
    corrected = str(ROOT / "data" / name / "corrected")
    spec = load_job_spec(ROOT / "job_specs" / name / "job-spec.yml", {"segmentName": "s"}, corrected)
    assert spec.warnings == () and [file.name for file in spec.input_files()] == ["orders.json"]
