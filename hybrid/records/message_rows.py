"""Which rows of one message are kept: they share its offset, so no later step could order rows of a key among them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from hybrid.config.table_config import TableSpec
from hybrid.records.outcome import Decoded, Filtered, Outcome, Rejected

_AGAIN = (
    "An earlier record of the message has the same key, and rows of a key are folded in order of their offsets: send "
    "each in a message of its own."
)


def resolve_rows(outcomes: list[list[Outcome]], spec: TableSpec, places: Sequence[int]) -> list[Outcome]:
    """The outcomes of a message's records; of several rows of a key only the winner is kept.

    With partial upsert every row of a key counts, in an order that only offsets define: the first is kept and the
    others are rejected. `places` are those of the key's columns in a row.
    """
    if spec.folds:
        outcomes = _first_of_each(outcomes, places)
    numbered = _with_numbers(outcomes)
    if spec.folds:
        return numbered
    return _last_of_each(numbered, spec, places) if spec.primary_key else numbered


def _with_numbers(outcomes: list[list[Outcome]]) -> list[Outcome]:
    """All outcomes. The reason of a rejection names its record, where several records were not filtered.

    Filtered records do not count: a replay compares the number of records with the number of rejected rows
    (`hybrid.table.replays.nothing_was_brought`), and a filtered record never becomes a row of the table.
    """
    counted = [any(type(outcome) is not Filtered for outcome in of_record) for of_record in outcomes]
    pairs = list(zip(accumulate(map(int, counted)), outcomes, strict=True))
    count = sum(counted)
    return [_numbered(outcome, number, count) for number, of_record in pairs for outcome in of_record]


def _last_of_each(found: list[Outcome], spec: TableSpec, places: Sequence[int]) -> list[Outcome]:
    """The outcomes without rows that lose to another row of the message: by comparison column, then by place.

    On a dedup table the first row of a key wins.
    """
    names = spec.schema.column_names
    upsert = spec.upsert
    compared = names.index(upsert.comparison_column) if upsert and upsert.comparison_column in names else None
    winners: dict[tuple[object, ...], Decoded] = {}
    for outcome in found:
        if isinstance(outcome, Decoded):
            key = tuple(outcome.values[place] for place in places)
            best = winners.get(key)
            if best is not None and upsert is not None and upsert.first_wins:
                continue
            if best is None or compared is None or not _is_below(outcome.values[compared], best.values[compared]):
                winners[key] = outcome
    kept_ids = {id(row) for row in winners.values()}
    return [outcome for outcome in found if not isinstance(outcome, Decoded) or id(outcome) in kept_ids]


def _first_of_each(found: list[list[Outcome]], places: Sequence[int]) -> list[list[Outcome]]:
    """The outcomes by record. A record with a key of an earlier record of the message becomes a rejected row.

    An update that changes its row's key is kept or rejected as a whole.
    """
    earlier_keys: set[tuple[object, ...]] = set()
    outcomes: list[list[Outcome]] = []
    for of_record in found:
        rows = [outcome for outcome in of_record if isinstance(outcome, Decoded)]
        keys = {tuple(row.values[place] for place in places) for row in rows}
        outcomes.append([Rejected(_AGAIN)] if keys & earlier_keys else of_record)
        earlier_keys |= keys
    return outcomes


def _numbered(found: Outcome, number: int, count: int) -> Outcome:
    """Names the record in the reason of its rejection, where a message has several that count."""
    return (
        Rejected(f"Record {number} of {count}: {found.reason}") if isinstance(found, Rejected) and count > 1 else found
    )


def _is_below(one: object, other: object) -> bool:
    """Whether a comparison value is lower than another of the same column; None is the lowest."""
    if one is None or other is None:
        return one is None and other is not None
    return bool(one < other)  # type: ignore[operator]
