"""The `update` records of Feldera's `insert_delete`: new values for some columns of a key's row. Pure.

After docs.feldera.com/formats/json: a column that is not named keeps its value. So only tables with partial upsert
accept updates. An update that the merge strategies would misread is rejected.
"""

from __future__ import annotations

from collections.abc import Mapping

from hybrid.config.table_config import Strategy, TableSpec
from hybrid.records.fields import Field, is_deciding


class Updates:
    """The decoding rules for updates of one table."""

    def __init__(self, spec: TableSpec, fields: tuple[Field, ...]) -> None:
        upsert = spec.upsert if spec.upsert is not None and spec.upsert.partial is not None else None
        free = [field.name for field in fields if upsert is not None and not is_deciding(spec, field.name)]
        self._strategies = {name: upsert.strategy_of(name) for name in free} if upsert is not None else {}
        self._refusal = None if upsert is not None else _refusal(spec)
        # Defaults and NOT NULL do not apply to columns that an update does not name.
        self.fields = tuple(
            field._replace(null=None, required=None, missing=()) if field.name in self._strategies else field
            for field in fields
        )

    @property
    def refusal(self) -> str | None:
        """Why this table accepts no updates; None when it does."""
        return self._refusal

    def problem(self, record: Mapping[str, object], stored: Mapping[str, object]) -> str | None:
        """Why a record is no valid update, or None. `stored` is its row, which has a null for an empty list."""
        for name, strategy in self._strategies.items():
            forced = strategy is Strategy.FORCE_OVERWRITE
            if stored[name] is not None:
                continue
            if forced and name not in record:
                return (
                    f"Column '{name}' is missing in an update, which its strategy FORCE_OVERWRITE takes for null: name "
                    "it, or send an insert."
                )
            if not forced and name in record:
                return (
                    f"Column '{name}': an update to null would leave the value as it is, by its strategy {strategy}; "
                    "FORCE_OVERWRITE takes nulls."
                )
        return None


def _refusal(spec: TableSpec) -> str:
    if not spec.primary_key:
        return 'An "update" needs a primary key that says which row it means; send a delete and an insert.'
    return 'An "update" of some columns needs upsertConfig mode PARTIAL; send an "insert" of the whole row.'
