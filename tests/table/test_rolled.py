"""What rows were rolled up by cannot become something else."""

import pytest

from hybrid.config.table_config import Aggregation, BucketConfig, MergeLevel, MergeType, MoveConfig
from hybrid.errors import SpecError
from hybrid.table.rollup_rules import refuse_rolled_otherwise

COUNT, SUM, MAX = Aggregation.COUNT, Aggregation.SUM, Aggregation.MAX


def task(kind: type[BucketConfig], how: Aggregation) -> BucketConfig:
    return kind(merge_type=MergeType.ROLLUP, aggregations=(("other", SUM), ("amount", how)))


@pytest.mark.parametrize(
    ("known", "kind", "how"), [(SUM, MoveConfig, MAX), (SUM, MergeLevel, MAX), (SUM, MoveConfig, COUNT),
                               (COUNT, MoveConfig, SUM), (COUNT, MergeLevel, MAX)]
)  # fmt: skip
def test_another_aggregation_is_refused(known: Aggregation, kind: type[BucketConfig], how: Aggregation) -> None:
    words = (
        f"Metric 'amount' of table 'sales' cannot be rolled up with '{how}': rows of OFFLINE hold what '{known}' made"
    )
    with pytest.raises(SpecError, match=words) as caught:
        refuse_rolled_otherwise("sales", {"amount": known}, [None, task(kind, how)])
    assert str(caught.value.hint).startswith(f'Write "amount.aggregationType": "{known}", and add a metric')


def test_what_stays_or_is_new_is_allowed() -> None:
    refuse_rolled_otherwise("sales", {}, [task(MoveConfig, MAX)])
    refuse_rolled_otherwise("sales", {"amount": COUNT}, [task(MoveConfig, COUNT), task(MergeLevel, SUM)])
    refuse_rolled_otherwise("sales", {"amount": SUM}, [None, MoveConfig(), task(MergeLevel, SUM)])
