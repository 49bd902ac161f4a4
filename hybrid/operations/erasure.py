"""`Erasure`: the deleted rows that a purge removes for good. `ErasureOptions`: those of a whole erasure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from hybrid.errors import UsageError
from hybrid.progress import counted
from hybrid.runtime.sentence_repr import shown_as

ERASE = "erase"  # the type of an erasure's runs


@dataclass(frozen=True)
class Erasure:
    """The request of a purge: the deleted rows that match `where`, in Pinot's SQL.

    `undecided` also removes rejected messages for which the condition cannot be evaluated.
    """

    where: str
    undecided: bool = False
    dry_run: bool = False
    reason: str | None = None
    user: str | None = None


class Refusal(NamedTuple):
    """Why an erasure would be refused now, and what helps."""

    message: str
    hint: str


@shown_as("{0.count_words}")
@dataclass(frozen=True)
class ErasurePreview:
    """What an erasure would find, place by place, and why it would be refused before it removes anything."""

    readings: Sequence[Mapping[str, Any]]
    refusals: Sequence[Refusal]

    @property
    def count_words(self) -> str:
        """The numbers of both."""
        return f"{counted(len(self.readings), 'reading')}, {counted(len(self.refusals), 'refusal')}"


@dataclass(frozen=True)
class ErasureOptions:
    """Options of an erasure. `reason` is kept in the certificate, so it must name nobody.

    `undecided` also removes rejected messages for which it cannot be decided whether they match, `dropped_copies`
    copies of dropped tables with such rows.
    """

    reason: str | None = None
    user: str | None = None
    undecided: bool = False
    dropped_copies: bool = False


def by_table(conditions: Mapping[str, str], name_of: Callable[[str], str]) -> dict[str, str]:
    """The conditions by the tables' own names, which `name_of` finds. UsageError when two names are of one table."""
    names: dict[str, str] = {}
    for given in conditions:
        name = name_of(given)
        if name in names:
            raise UsageError(
                f"'{names[name]}' and '{given}' are one table, '{name}', with a condition each. Nothing was erased.",
                hint="Give the table once, and join its conditions with OR.",
            )
        names[name] = given
    return {name: conditions[given].strip() for name, given in names.items()}
