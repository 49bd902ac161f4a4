"""The report of a job or a revert: numbers and one sentence (R7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hybrid.replace.check_result import CheckResult
from hybrid.replace.diff import Difference, Sample
from hybrid.runtime.json_values import capitalized
from hybrid.runtime.sentence_repr import shown_as_sentence
from hybrid.table.plans import Counts


@shown_as_sentence
@dataclass(frozen=True)
class JobReport:
    """The result of a job or a revert. `act` and `version` are None when nothing was committed.

    `segments_to` replaced `segments_from`; a name in both was kept. Rows and differences count as in `Difference`.
    `staged_for` is the open replacement that the rows are staged for; they are not visible yet.
    """

    table: str
    act: str | None
    version: int | None
    segments_from: tuple[str, ...]
    segments_to: tuple[str, ...]
    rows_before: int
    rows_after: int
    added: int
    removed: int
    changed: int
    sentence: str
    changed_columns: Mapping[str, int] = field(default_factory=dict)
    samples: tuple[Sample, ...] = ()
    warnings: tuple[str, ...] = ()
    dry_run: bool = False
    expectations: tuple[CheckResult, ...] = ()
    staged_for: str | None = None

    @property
    def committed(self) -> bool:
        """Whether anything was changed."""
        return self.version is not None

    @property
    def did_something(self) -> bool:
        """Whether anything was changed or staged."""
        return self.committed or self.staged_for is not None

    @property
    def segments(self) -> tuple[str, ...]:
        """Every segment that was replaced, written or removed."""
        return tuple(dict.fromkeys([*self.segments_from, *self.segments_to]))

    def to_json(self) -> dict[str, object]:
        """One flat object."""
        lists = {"samples": [vars(sample) for sample in self.samples]}
        doc = {**vars(self), **lists, "expectations": [result.to_json() for result in self.expectations]}
        del doc["staged_for"]  # the sentence already says it
        return doc


def report_of(
    table: str, names: tuple[tuple[str, ...], tuple[str, ...]], found: Difference, sentence: str, **more: object
) -> JobReport:
    """A report of a difference; `names` are the old and new segments, `more` the report's own fields."""
    return JobReport(
        table=table,
        segments_from=names[0],
        segments_to=names[1],
        rows_before=found.rows_before,
        rows_after=found.rows_after,
        added=found.added,
        removed=found.removed,
        changed=found.changed,
        changed_columns=found.changed_columns,
        samples=found.samples,
        sentence=sentence,
        **{"act": None, "version": None, **more},  # type: ignore[arg-type]
    )


def sentence_of_job(
    segments_from: Sequence[str], segments_to: Sequence[str], found: Difference, dry_run: bool, filtered: int = 0
) -> str:
    """What a job did, or would do. `filtered` counts the records that the table's filter dropped."""
    new = [name for name in segments_to if name not in segments_from]
    gone = [name for name in segments_from if name not in segments_to] if segments_to else []
    replaced = [name for name in segments_from if name not in gone]
    verbs = ("would replace", "would add", "would remove") if dry_run else ("replaced", "added", "removed")
    groups = zip(verbs, (replaced, new, gone), strict=True)
    done = " and ".join(f"{verb} {shown(names)}" for verb, names in groups if names)
    end = " Nothing was touched." if dry_run else ""
    return f"{capitalized(done)}: {numbers(found)}{dropped(filtered)}.{end}"


def sentence_of_nothing(names: Sequence[str], found: Difference, filtered: int = 0) -> str:
    """Why a job changed nothing."""
    holds = "already holds" if len(names) == 1 else "already hold"
    these = "this 1 row" if found.rows_after == 1 else f"these {found.rows_after} rows"
    return f"Nothing to change: {shown(names)} {holds} exactly {these}{dropped(filtered)}."


def sentence_of_push(names: Sequence[str], rows: int, entry_id: str, dry_run: bool, filtered: int = 0) -> str:
    """What a job did, or would do, whose segments the open replacement `entry_id` waits for."""
    count = f"{rows} row{'s' * (rows != 1)}{dropped(filtered)}"
    if dry_run:
        return f"Would stage {shown(names)} for replacement '{entry_id}': {count}. Nothing was touched."
    return f"Staged {shown(names)} for replacement '{entry_id}': {count}. Not visible before that ends."


def dropped(filtered: int) -> str:
    """`; 3 records were filtered out`, or empty for 0."""
    count = "1 record was" if filtered == 1 else f"{filtered} records were"
    return f"; {count} filtered out" if filtered else ""


def numbers(found: Difference | Counts) -> str:
    """`7 rows before, 7 after; 0 added, 0 removed, 7 changed (amount 7)`."""
    columns = ", ".join(f"{name} {count}" for name, count in found.changed_columns.items())
    return (
        f"{found.rows_before} row{'s' * (found.rows_before != 1)} before, {found.rows_after} after; "
        f"{found.added} added, {found.removed} removed, {found.changed} changed{f' ({columns})' if columns else ''}"
    )


def shown(names: Sequence[str]) -> str:
    """`segment 'x'`, or the number of segments with the first and the last."""
    if len(names) == 1:
        return f"segment '{names[0]}'"
    return f"{len(names)} segments '{names[0]}' to '{names[-1]}'"
