from __future__ import annotations

import pytest

from hybrid.errors import UsageError
from hybrid.files.results.result_format import (
    ResultFormat,
    distinct_names,
    format_accepted,
    format_named,
    format_of_file,
)


@pytest.mark.parametrize(
    ("path", "fmt"),
    [
        ("a.csv", "csv"), ("a.b.JSON", "json"), ("x/a.jsonl", "jsonl"), ("a.ndjson", "jsonl"), ("a.md", "markdown"),
        ("a.markdown", "markdown"), ("a.parquet", "parquet"), ("a.arrow", "arrow"),
    ],
)  # fmt: skip
def test_the_suffix_is_the_format(path: str, fmt: str) -> None:
    assert format_of_file(path) == fmt


def test_a_named_format_wins() -> None:
    assert format_of_file("a.csv", "Parquet") is ResultFormat.PARQUET


@pytest.mark.parametrize(("path", "words"), [("a.xls", "suffix '.xls' names no format"), ("a", "without a suffix")])
def test_an_unknown_suffix_is_an_error_with_the_list(path: str, words: str) -> None:
    with pytest.raises(UsageError, match=words) as failed:
        format_of_file(path)
    assert all(suffix in str(failed.value) for suffix in (".csv", ".json", ".jsonl", ".md", ".parquet", ".arrow"))
    assert "--format csv|json|jsonl|markdown|parquet|arrow" in str(failed.value.hint)


def test_an_unknown_name_is_an_error_with_the_list() -> None:
    with pytest.raises(UsageError, match="'xls' is no format of a result: csv, json, jsonl, markdown, parquet and"):
        format_named("xls")


@pytest.mark.parametrize(
    ("accept", "fmt"),
    [
        ("", "csv"), ("*/*", "csv"), ("text/html,application/json;q=0.9", "json"), ("application/x-ndjson", "jsonl"),
        ("application/vnd.apache.arrow.stream, text/csv", "arrow"), ("application/vnd.apache.parquet", "parquet"),
        ("text/markdown", "markdown"),
    ],
)  # fmt: skip
def test_what_a_client_accepts(accept: str, fmt: str) -> None:
    assert format_accepted(accept) == fmt


def test_repeated_names_get_numbers() -> None:
    assert distinct_names(["a", "b", "a", "a"]) == ["a", "b", "a_2", "a_3"]
    assert distinct_names(["a", "a", "a_2"]) == ["a", "a_3", "a_2"]
    assert distinct_names([]) == []
