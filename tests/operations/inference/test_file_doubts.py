"""What the documents of a file leave to their reader: numbers in texts, the bucket of a table without moves, paths."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from hybrid.config.table_json import parse_table
from hybrid.errors import UsageError
from hybrid.records.decode import Decoder
from hybrid.records.outcome import Rejected
from tests.operations.inference.test_files import infer, notes, of_records, types, write_rides


@pytest.mark.parametrize(
    ("values", "type_", "what"),
    [
        (["27.71", "3"], "DOUBLE", "numbers written as texts."),
        (["1", None, "-2"], "LONG", "numbers written as texts."),
        (["9223372036854775808"], "BIG_DECIMAL", "numbers written as texts."),
        (["0.12345678901234567"], "BIG_DECIMAL", "numbers written as texts."),
        (["27.71", 3], "DOUBLE", "numbers written as texts in part."),
        (["true", "FALSE"], "BOOLEAN", "true or false written as texts."),
        ([["1", "2"], []], "LONG", "numbers written as texts."),
    ],
)
def test_values_that_are_all_texts_of_numbers_are_named_with_the_type_that_takes_them(
    tmp_path: Path, values: list[Any], type_: str, what: str
) -> None:
    records = [{"x": value} for value in values]
    found = of_records(tmp_path, records)
    assert types(found)["x"].startswith("STRING") and f"All sampled values of 'x' are {what}" in notes(found)
    assert f"change its type in the schema to {type_}: the decoder converts the texts" in notes(found)
    schema = json.loads(json.dumps(found.schema).replace('"STRING"', f'"{type_}"'))
    assert found.offline is not None
    decoder = Decoder(parse_table(schema, "schema", [(dict(found.offline), "config")]))
    assert not any(isinstance(decoder.convert(record), Rejected) for record in records)


@pytest.mark.parametrize("values", [["007", "8"], ["1", "x"], ["1", ""], ["+1"], ["x"], [None], [[]], [{"a": "1"}]])
def test_codes_and_other_texts_are_no_numbers(tmp_path: Path, values: list[Any]) -> None:
    assert "All sampled values" not in notes(of_records(tmp_path, [{"x": value} for value in values]))


def test_a_type_that_a_file_declares_and_a_statement_have_the_note_too(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": ["27.71"], "n": ["3"], "ts": ["1764045855732"]}), tmp_path / "x.parquet")
    found = infer(tmp_path / "x.parquet", ddl=True)
    assert "'x' are numbers" in notes(found) and "change its type in the statement to DOUBLE" in notes(found)
    assert "change its type in the statement to BIGINT" in notes(found)
    assert "All sampled values of 'ts'" not in notes(found) and found.time_column == "ts"  # it is stored as a LONG


def test_a_bucket_that_no_document_has_is_not_named(tmp_path: Path) -> None:
    records = [{"ts": 1764045855732, "a": 1}]
    alone = of_records(tmp_path, records, without_time=False)
    assert "Buckets are" not in notes(alone) and "bucketTimePeriod" not in json.dumps(alone.to_json())
    for options in ({"topic": "t"}, {"ddl": True}):
        named = of_records(tmp_path, records, without_time=False, **options)
        assert "Buckets are 1h long" in notes(named) and "ucketTimePeriod" in json.dumps(named.to_json())
    with pytest.raises(UsageError, match="an OFFLINE half alone has no moves"):
        of_records(tmp_path, records, without_time=False, bucket="1d")


def test_a_path_is_written_without_dots(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_rides(tmp_path / "data", ".jsonl")
    (tmp_path / "files").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    monkeypatch.chdir(tmp_path / "files")
    for given in ("../data/rides.jsonl", "./../files/../data/rides.jsonl"):
        found = infer(Path(given), ddl=True)
        assert f'inputDirURI: "{path}"' in str(found.job) and f'"path": "{path}"' in str(found.ddl)
    kept = tmp_path / "link" / "rides.jsonl"
    assert f'inputDirURI: "{kept}"' in str(infer(kept).job)
