"""Columns of which nearly all values are times: what is said of the others, and when `--time` takes such a column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hybrid.errors import DataError, UsageError
from tests.operations.inference.test_files import infer, notes, of_records, of_text, types

ISO = "2025-11-24T10:00:00Z"
MILLIS = 1764045855732


@pytest.mark.parametrize(
    ("time", "others", "type_", "words", "rejected"),
    [
        (ISO, ["yesterday"], "TIMESTAMP", 'ISO 8601; "yesterday" at line 40 is not.', 1),
        (ISO, [5, ""], "TIMESTAMP", "ISO 8601; 5 at line 39 and 1 other are not.", 1),
        ("24.11.2025", ["?", "24/11/25"], "STRING", 'times of the pattern dd.MM.yyyy; "?" at line 39 and 1 other', 2),
        (MILLIS, ["soon"], "LONG", 'epoch milliseconds of likely years; "soon" at line 40 is not.', 1),
        (MILLIS, [0], "LONG", "epoch milliseconds of likely years; 0 at line 40 is not.", 0),
        (MILLIS, [1.5], "LONG", "epoch milliseconds of likely years; 1.5 at line 40 is not.", 1),
        (str(MILLIS), [True], "LONG", "epoch milliseconds of likely years; true at line 40 is not.", 0),
    ],
)
def test_a_column_of_nearly_only_times_is_taken_when_it_is_named(
    tmp_path: Path, time: Any, others: list[Any], type_: str, words: str, rejected: int
) -> None:
    records = [{"at": value, "n": 1} for value in [*[time] * (40 - len(others)), *others]]
    found = of_records(tmp_path, records, time_column="at")
    assert (found.time_column, types(found)["at"], found.rejected) == ("at", type_, rejected)
    counts = f"'at': {40 - len(others)} of 40 values are "
    assert f"{counts}{words}" in notes(found) and "'at' holds" not in notes(found)
    what = "A job stops at such a record." if rejected == len(others) else "become rows of these times."
    assert what in notes(found)
    with pytest.raises(DataError, match="time in every record") as error:
        of_records(tmp_path, records, without_time=False)
    assert f"{counts}{words}" in str(error.value)
    assert "--time at takes it, and a job stops at a record without a time" in str(error.value.hint)


def test_a_file_of_csv_names_the_line(tmp_path: Path) -> None:
    text = "id,at\n" + "".join(f"{number},{MILLIS + number}\n" for number in range(30)) + "30,n/a\n"
    found = of_text(tmp_path, text, without_time=False, time_column="at")
    assert "'at': 30 of 31 values are epoch milliseconds of likely years; \"n/a\" at line 32 is not." in notes(found)
    assert (types(found)["at"], found.rejected) == ("LONG", 1) and "nullStringValue" not in notes(found)
    with pytest.raises(DataError, match="at line 32 is not"):
        infer(tmp_path / "x.csv")


def test_a_column_with_many_other_values_is_refused_with_their_count(tmp_path: Path) -> None:
    records = [{"at": value, "n": "x"} for value in [*[ISO] * 18, "a", "b"]]
    words = "'at': 18 of 20 values are ISO 8601; \"a\" at line 19 and 1 other are not."
    with pytest.raises(UsageError) as named:
        of_records(tmp_path, records, time_column="at")
    assert str(named.value) == f"Too few values are times. {words}" and "at most 5 %" in str(named.value.hint)
    with pytest.raises(DataError) as unnamed:
        of_records(tmp_path, records, without_time=False)
    assert f"looks like a time. {words} Columns are: at, n." in str(unnamed.value)
    with pytest.raises(UsageError, match=r"'n' is STRING.* of one format\. The first one is \"x\" at line 1\."):
        of_records(tmp_path, records, time_column="n")


def test_one_of_twenty_values_may_be_another(tmp_path: Path) -> None:
    assert of_records(tmp_path, [{"at": ISO}] * 19 + [{"at": "x"}], time_column="at").rejected == 1
    with pytest.raises(UsageError, match="18 of 19 values"):
        of_records(tmp_path, [{"at": ISO}] * 18 + [{"at": "x"}], time_column="at")


def test_a_likelier_column_that_is_not_taken_is_named(tmp_path: Path) -> None:
    records = [{"ts": ISO, "updated_at": ISO}] * 19 + [{"ts": "x", "updated_at": ISO}]
    found = of_records(tmp_path, records, without_time=False)
    assert found.time_column == "updated_at"
    assert "'ts' is a likelier time column than 'updated_at', and not all of its values are times" in notes(found)
    records = [{"updated_at": value, "ts": ISO} for value in [*[ISO] * 19, "x"]]
    assert "is a likelier" not in notes(of_records(tmp_path, records, without_time=False))


def test_nulls_and_other_values_of_a_time_are_counted_apart(tmp_path: Path) -> None:
    found = of_records(tmp_path, [{"at": ISO}] * 19 + [{"at": "x"}, {"at": None}], time_column="at")
    assert "'at' is null in 1 record: a row without a time is rejected." in notes(found)
    assert "'at': 19 of 20 values are ISO 8601" in notes(found) and found.rejected == 2
