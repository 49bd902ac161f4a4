"""`BackfillChange`: the correction that a backfill is planned for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hybrid.config.input_rules import InputRules


@dataclass(frozen=True)
class BackfillChange:
    """A requested correction: exactly one of `update`, `delete`, `input`, `sql`, `from_rejected` and `from_kafka`.

    `start` and `end` are ISO 8601, or written as in the time column. `update` is `a = expr, b = expr` and `where` a
    condition, both in Pinot's SQL. `input` is a file or a folder of files, `sql` a statement whose rows are brought.
    `from_rejected` brings the rejected rows that convert now, `from_kafka` what Kafka still holds. `expect` adds
    expectations to those of the table.
    """

    start: str | None = None
    end: str | None = None
    update: str | None = None
    delete: bool = False
    where: str | None = None
    input: str | None = None
    sql: str | None = None
    expect: Sequence[str] = ()
    reason: str | None = None
    user: str | None = None
    from_rejected: bool = False
    from_kafka: bool = False

    @property
    def words(self) -> str:
        """The change in words, for a sentence."""
        if self.from_rejected:
            return "rejected rows that convert now"
        if self.from_kafka:
            return "what Kafka still holds"
        matching = f" where {self.where}" if self.where else ""
        if self.update is not None:
            return f"update {self.update}{matching}"
        return f"delete{matching}" if self.delete else f"rows of {self.input or self.sql}"

    def named(self, rules: InputRules | None) -> BackfillChange:
        """The change as its author knows it: uploaded files by their names, for nobody knows where a server put them.

        `rules` are those of the run that plans it.
        """
        if self.input is None or rules is None or not rules.is_upload:
            return self
        path = Path(self.input)
        names = sorted(file.name for file in path.iterdir()) if path.is_dir() else [path.name]
        return replace(self, input=", ".join(names))
