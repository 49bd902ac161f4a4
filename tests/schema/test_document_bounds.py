"""Checks of documents take time in proportion to their length, and have bounds."""

import time

import pytest

from hybrid.config.job_document import job_document
from hybrid.config.overrides import parse_document
from hybrid.config.schema_json import COLUMNS_MAX, parse_schema
from hybrid.errors import SpecError


@pytest.mark.slow
def test_many_columns() -> None:
    def schema(count: int) -> dict[str, object]:
        fields = [{"name": f"c{number}", "dataType": "INT"} for number in range(count)]
        return {"schemaName": "s", "dimensionFieldSpecs": fields}

    began = time.process_time()
    with pytest.raises(SpecError, match=f"at most {COLUMNS_MAX} columns"):
        parse_schema(schema(200_000), "f")
    assert time.process_time() - began < 10
    keys = {**schema(10), "primaryKeyColumns": ["c1"] * 1_000_000}
    with pytest.raises(SpecError, match="is given twice in the primary key"):
        parse_schema(keys, "f")


def test_columns_that_differ_by_case_are_named() -> None:
    fields = [{"name": name, "dataType": "INT"} for name in ("One", "two", "oNE")]
    with pytest.raises(SpecError, match="column 'oNE' is given twice in the schema"):
        parse_schema({"schemaName": "s", "dimensionFieldSpecs": fields}, "f")


@pytest.mark.slow
def test_many_keys() -> None:
    text = "{" + ", ".join(f'"k{number}": 1' for number in range(100_000)) + ', "k99999": 2}'
    began = time.process_time()
    with pytest.raises(SpecError, match="key 'k99999' is given twice"):
        parse_document(text, "f")
    assert time.process_time() - began < 5


@pytest.mark.slow
def test_job_specs_have_bounds() -> None:
    began = time.process_time()
    with pytest.raises(SpecError, match="at most 1048576 characters"):
        job_document("a: 1\n" * 300_000, "f")
    with pytest.raises(SpecError, match="more than 100000 values"):
        job_document("a: [" + "1," * 400_000 + "1]", "f")
    with pytest.raises(SpecError, match="aliases stand for more"):
        job_document(
            "a: &a [1,2,3,4,5,6,7,8,9]\n"
            + "".join(
                f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdef", "bcdefg", strict=True)
            ),
            "f",
        )
    assert time.process_time() - began < 10
    assert job_document("a: {b: [1, 2020-01-01, x]}\nc: !!str 1", "f")["c"] == "1"
