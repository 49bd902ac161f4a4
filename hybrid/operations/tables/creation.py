"""`Creation`: the result of creating or changing a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hybrid.runtime.sentence_repr import shown_as_sentence


@shown_as_sentence
@dataclass(frozen=True)
class Creation:
    """The result of a create or apply: `changes` by document path, start offsets by partition, warnings, a sentence."""

    table: str
    changes: Sequence[str]
    starts: Mapping[str, int]
    warnings: Sequence[str]
    sentence: str
