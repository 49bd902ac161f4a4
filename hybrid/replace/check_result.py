"""The result of an expectation: a sentence, numbers, and a sample of the failing rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from hybrid.config.expectations import Expectation, ExpectationKind, OnFailure
from hybrid.errors import DataError

SAMPLES_MAX = 3
_SAMPLE_SHOWN_MAX = 200


class CheckState(StrEnum):
    """PASSED, or the outcome that `on_failure` gives a failure."""

    PASSED = "PASSED"
    FAILED = "FAILED"
    WARNED = "WARNED"
    DROPPED = "DROPPED"


@dataclass(frozen=True)
class CheckResult:
    """The result of one expectation. `rows` counts the failing rows; `sample` holds user columns of the first of them.

    For `unique`, failing rows are all but the first of equal ones. `row_count_change` has no failing rows.
    """

    name: str
    kind: str
    on_failure: str
    state: CheckState
    rows: int
    sample: tuple[Mapping[str, object], ...]
    sentence: str

    def to_json(self) -> dict[str, object]:
        """One flat object, as reports and lineage entries hold it."""
        return {**vars(self), "state": self.state.value, "sample": list(self.sample)}

    @classmethod
    def from_json(cls, doc: Mapping[str, Any]) -> CheckResult:
        """The inverse of `to_json`."""
        return cls(**{**doc, "state": CheckState(doc["state"]), "sample": tuple(doc["sample"])})


def result_of(
    expectation: Expectation, rows: int, total: int, sample: Sequence[Mapping[str, object]] = ()
) -> CheckResult:
    """The result of an expectation on rows, of which `rows` of `total` fail."""
    if not rows:
        all_rows = "the 1 row" if total == 1 else f"all {total} rows"
        return _result(expectation, CheckState.PASSED, f"{all_rows} hold{'s' * (total == 1)}." if total else "no rows.")
    state = _STATES[expectation.on_failure]
    out = "; left out" if state is CheckState.DROPPED else ""
    sentence = f"{rows} of {total} row{'s' * (total != 1)} fail{'s' * (rows == 1)}: {_why(expectation)}{out}."
    return _result(expectation, state, sentence, rows, tuple(sample))


def change_result(expectation: Expectation, rows_before: int | None, rows_after: int) -> CheckResult:
    """The result of `row_count_change`. It passes when there were no rows before."""
    if not rows_before:
        return _result(expectation, CheckState.PASSED, f"{rows_after} rows, and none before to compare with.")
    percent = 100 * abs(rows_after - rows_before) / rows_before
    word = "fewer" if rows_after < rows_before else "more"
    differs = f"{percent:.4g} % {word}" if rows_after != rows_before else "as many"
    sentence = f"{rows_after} rows where {rows_before} were: {differs}; at most {expectation.percent:g} % is expected."
    state = CheckState.PASSED if percent <= expectation.percent else _STATES[expectation.on_failure]
    return _result(expectation, state, sentence)


def refuse_failed(table: str, results: Sequence[CheckResult]) -> None:
    """DataError that names each failed expectation whose failure stops the job."""
    failed = [result for result in results if result.state is CheckState.FAILED]
    if not failed:
        return
    count = "An expectation" if len(failed) == 1 else f"{len(failed)} expectations"
    sentences = " ".join(f"{result.sentence}{_example(result)}" for result in failed)
    raise DataError(
        f"{count} of table '{table}' failed. {sentences} Nothing was changed.",
        hint="Correct the input, or let the expectation warn or drop: on_failure.",
    )


def _example(result: CheckResult) -> str:
    if not result.sample:
        return ""
    text = json.dumps(result.sample[0], ensure_ascii=False)
    return f" E.g. {text if len(text) <= _SAMPLE_SHOWN_MAX else text[: _SAMPLE_SHOWN_MAX - 3] + '...'}"


def _result(
    expectation: Expectation,
    state: CheckState,
    words: str,
    rows: int = 0,
    sample: tuple[Mapping[str, object], ...] = (),
) -> CheckResult:
    check = expectation
    sentence = f"Expectation '{check.name}': {words}"
    return CheckResult(check.name, check.kind.value, check.on_failure.value, state, rows, sample, sentence)


def _why(expectation: Expectation) -> str:
    names = ", ".join(f"'{name}'" for name in expectation.columns)
    match expectation.kind:
        case ExpectationKind.NOT_NULL:
            return f"{names} is null"
        case ExpectationKind.RANGE:
            ends = (("below", expectation.low), ("above", expectation.high))
            return f"{names} is " + " or ".join(f"{word} {end}" for word, end in ends if end is not None)
        case ExpectationKind.UNIQUE:
            return f"{names} stood in an earlier row"
        case ExpectationKind.ACCEPTED_VALUES:
            return f"{names} is none of the {len(expectation.values)} accepted values"
    return f"not ({' '.join(expectation.sql.split())})"


_STATES = {
    OnFailure.WARN: CheckState.WARNED,
    OnFailure.DROP: CheckState.DROPPED,
    OnFailure.FAIL: CheckState.FAILED,
}
