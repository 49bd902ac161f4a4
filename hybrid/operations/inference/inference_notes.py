"""Sentences about what a person should check in inferred documents."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from hybrid.config.table_config import Half
from hybrid.operations.inference.column_sample import ColumnSample, TypeChoice, ValueKind, kind_of, type_in_texts
from hybrid.operations.inference.inferred_documents import PlannedColumn, TablePlan
from hybrid.operations.inference.record_sample import MalformedRecord, RecordSample
from hybrid.operations.inference.time_column import TimeChoice
from hybrid.schema.types import DataType

_SHOWN = 3
# Fewer records say nothing about a key.
_UNIQUE_FROM = 5
_DEBEZIUM = {"before", "after", "op"}
_KEY_TYPES = {DataType.INT, DataType.LONG, DataType.STRING}
_KEY_NAME = re.compile(r"(?:^|_)(?:id|key|uuid|guid|number|no|code)$|[a-z](?:Id|Key|Uuid|Number|No|Code)$")


class NoteWriter:
    """Collects the notes of one inference. `ddl_types`: SQL's names of types, where a statement is written."""

    def __init__(self, sample: RecordSample, ddl_types: Mapping[DataType, str] | None = None) -> None:
        self._sample = sample
        self._document, self._types = ("schema", {}) if ddl_types is None else ("statement", ddl_types)
        self.notes: list[str] = [f"Read {sample.counted} of {sample.source}."]
        self._unread()
        self._malformed()
        self._envelopes()

    def add(self, note: str) -> None:
        """Adds a note, in which text of the sample is UTF-8."""
        self.notes.append(note.encode("utf-8", "replace").decode())

    def _unread(self) -> None:
        unread = self._sample.unread
        if unread is not None:
            self.add(
                f"The sample ended early, at its limit of {unread.limit}. Not read: {_first(unread.ranges)}. Columns "
                "that only these messages have are missing: try again, or with a smaller --sample."
            )

    def _malformed(self) -> None:
        malformed = self._sample.malformed
        if malformed:
            shown = _first([f"{record.place}: {record.reason}" for record in malformed])
            if self._sample.half is Half.OFFLINE:
                self.add(f"The file cannot be read from here on, and a job stops there: {shown}")
            elif len(malformed) == 1:
                self.add(f"1 message is no record and becomes a rejected row: {shown}")
            else:
                self.add(f"{len(malformed):,} messages are no records and become rejected rows: {shown}")

    def _envelopes(self) -> None:
        if all(record.values.keys() >= _DEBEZIUM for record in self._sample.records):
            self.add(
                "Every record has the fields before, after and op: they are changes of Debezium. Infer from the rows "
                "in 'after', and give the connector of a DDL the update_format debezium."
            )

    def columns(
        self,
        fields: Sequence[ColumnSample],
        choices: Mapping[str, TypeChoice | None],
        names: Mapping[str, str],
        times: Collection[str],
    ) -> None:
        """Notes on types that are not plain, on fields renamed or left out. `times` are the fields that hold times."""
        for column in fields:
            choice, name = choices[column.field], names.get(column.field)
            if choice is None:
                self.add(f"'{column.field}' is left out: no type stores its values.")
            elif name is None:
                self.add(f"'{column.field}' is left out: no transform can read a field of this name.")
            elif name != column.field:
                self.add(f"'{column.field}' fills column '{name}': names of columns cannot have all characters.")
            if choice is None or column.field in times:  # a time has another type
                continue
            if choice.note is not None:
                self.add(f"'{column.field}' {choice.note}")
            if choice.data_type is DataType.STRING:
                self._numbers_in_text(column)
                if name is not None:
                    self._all_in_text(column)

    def _all_in_text(self, column: ColumnSample) -> None:
        """Says which type would take a STRING column whose texts are all numbers, or all true and false."""
        found = type_in_texts(column)
        if found is None:
            return
        data_type, is_all_text = found
        what = "true or false" if data_type is DataType.BOOLEAN else "numbers"
        texts = "texts" if is_all_text else "texts in part"
        self.add(
            f"All sampled values of '{column.field}' are {what} written as {texts}. The column is STRING, which is "
            f"compared and sorted as text. To store {what}, change its type in the {self._document} to "
            f"{self._types.get(data_type, data_type)}: the decoder converts the texts."
        )

    def _numbers_in_text(self, column: ColumnSample) -> None:
        """Says which texts would make a column of CSV a number if they were nulls."""
        texts = {str(value.raw) for value in column.values if kind_of(value.meant) is ValueKind.TEXT}
        numbers = any(kind_of(value.meant) in {ValueKind.WHOLE, ValueKind.FRACTION} for value in column.values)
        if self._sample.csv is not None and numbers and len(texts) == 1:
            self.add(
                f"Without {texts.pop()!r} '{column.field}' holds numbers only. If it means null, set nullStringValue "
                "in recordReaderSpec.configs, and the column's type to DOUBLE or LONG."
            )

    def other_times(self, best: PlannedColumn, others: Sequence[PlannedColumn]) -> None:
        """A note on further columns that could be the time column."""
        if others:
            names = ", ".join(f"'{column.name}'" for column in others)
            self.add(f"The time column is '{best.name}'. Times are also in {names}: --time chooses another.")

    def likelier_time(self, best: PlannedColumn, likelier: PlannedColumn, time: TimeChoice) -> None:
        """A note on a column that would be the time column, were all of its values times."""
        self.add(
            f"'{likelier.name}' is a likelier time column than '{best.name}', and not all of its values are times: "
            f"--time {likelier.name} takes it. {time.misfit_sentence(likelier.name)}"
        )

    def times(self, plan: TablePlan, *, writes_bucket: bool) -> None:
        """Notes on the time column and on its bucket, where the documents have one."""
        if plan.time is None or plan.time.time is None:
            self.add("The table has no time column: rows move by offsets alone, and have no retention by age.")
            return
        time = plan.time.time
        if time.other is not None:
            pattern = time.format.partition("SIMPLE_DATE_FORMAT:")[2]
            self.add(f"The times of '{plan.time.name}' fit the pattern {pattern} and also {time.other}: check it.")
        if time.nulls:
            self.add(f"'{plan.time.name}' is null in {_records(time.nulls)}: a row without a time is rejected.")
        if time.misfits:
            self.add(f"{time.misfit_sentence(plan.time.name)} {self._of_misfits(time)}")
        if plan.bucket is None and writes_bucket:
            hours = (time.last_ms - time.first_ms) / 3_600_000
            span = f"{hours / 24:,.1f} days" if hours >= 48 else f"{hours:,.1f} hours"
            self.add(
                f"Buckets are {plan.bucket_period} long, as the sample spans {span}: --bucket sets another length."
            )

    def _of_misfits(self, time: TimeChoice) -> str:
        """What becomes of values that are no times."""
        if not time.are_unreadable:
            return "Values that the decoder can read as times all the same become rows of these times."
        if self._sample.half is Half.OFFLINE:
            return "A job stops at such a record."
        return "Such messages become rejected rows."

    def keys(self, plan: TablePlan, fields: Sequence[ColumnSample]) -> None:
        """A note on columns that could be a primary key, or on the key's values in the sample."""
        by_field = {column.field: column for column in fields}
        if plan.key:
            for column in plan.columns:
                nulls = by_field[column.field].nulls
                if column.name in plan.key and nulls:
                    which = "which is rejected" if nulls == 1 else "which are rejected"
                    self.add(f"'{column.name}' of the key is null in {_records(nulls)}, {which}.")
            return
        unique = [column.name for column in plan.columns if _may_be_key(column, by_field[column.field])]
        unique.sort(key=lambda name: _KEY_NAME.search(name) is None)
        if unique:
            names = " and ".join(f"'{name}'" for name in unique[:_SHOWN])
            self.add(
                f"No primary key is set. Unique in the sample: {names}. With --key {unique[0]} a newer row replaces "
                "an older one of the same key."
            )

    def csv(self) -> None:
        """Notes on how a CSV file is read."""
        configs = self._sample.csv or {}
        if "header" in configs:
            self.add(
                "The first line is read as a record: as a header it would have numbers, empty or repeated names. "
                "Name the columns in `header` of recordReaderSpec.configs, and in the schema."
            )
        if "delimiter" in configs:
            self.add(f"The delimiter of cells is {configs['delimiter']!r}.")

    def rejected(self, records: Sequence[MalformedRecord]) -> None:
        """A note on records that these documents would reject."""
        if records:
            shown = "; ".join(f"{record.place}: {record.reason}" for record in records[:_SHOWN])
            stops = " A job stops at the first of them." if self._sample.half is Half.OFFLINE else ""
            self.add(f"{len(records):,} of the {len(self._sample.records):,} records would be rejected: {shown}{stops}")


def _first(texts: Sequence[str]) -> str:
    """The first texts, and how many more there are."""
    more = [f"and {len(texts) - _SHOWN:,} more"] if len(texts) > _SHOWN else []
    return "; ".join([*texts[:_SHOWN], *more])


def _records(count: int) -> str:
    """`1 record`, `1,200 records`."""
    return f"{count:,} record{'' if count == 1 else 's'}"


def _may_be_key(column: PlannedColumn, sample: ColumnSample) -> bool:
    """Whether a column is unique in the sample, and of a type that keys have."""
    if column.time is not None or column.choice.is_list or column.choice.data_type not in _KEY_TYPES:
        return False
    if sample.nulls or sample.records < _UNIQUE_FROM:
        return False
    return sample.distinct == sample.records
