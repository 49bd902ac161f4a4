"""Tables and conditions that cannot be purged."""

from dataclasses import replace

import pytest

from hybrid.errors import SpecError
from hybrid.replace.purge.asked import require_purgeable
from hybrid.spec.table_config import Aggregation, MergeLevel, MergeType, MoveConfig
from tests.query.halves import orders_spec

ROLLUP = {"merge_type": MergeType.ROLLUP, "aggregations": (("amount", Aggregation.SUM),)}


def test_a_condition_on_what_was_rolled_up_or_rounded_is_refused():
    plain = orders_spec()
    for changes in ({"move": MoveConfig(**ROLLUP)}, {"merge_levels": (MergeLevel(**ROLLUP, name="1day"),)}):
        spec = replace(plain, **changes)
        require_purgeable(spec, ["customer", "ts"])
        with pytest.raises(SpecError, match="'amount' of table 'orders' is rolled up in OFFLINE"):
            require_purgeable(spec, ["customer", "amount"])
    rounds = replace(plain, move=MoveConfig(round_ms=60_000))
    require_purgeable(rounds, ["customer", "amount"])
    with pytest.raises(SpecError, match="'ts' of table 'orders' is rounded in OFFLINE"):
        require_purgeable(rounds, ["ts"])
    require_purgeable(plain, ["amount", "ts"])
