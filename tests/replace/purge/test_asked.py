"""Tables and conditions that cannot be purged."""

from dataclasses import replace

import pytest

from hybrid.config.table_config import Aggregation, MergeLevel, MergeType, MoveConfig
from hybrid.errors import SpecError
from hybrid.replace.purge.request import require_purgeable
from hybrid.table.state import Act, OfflineState
from tests.query.halves import orders_spec

NEW = OfflineState(Act("create", 0, "create", "now"))
ROLLUP = {"merge_type": MergeType.ROLLUP, "aggregations": (("amount", Aggregation.SUM),)}


def test_a_condition_on_what_was_rolled_up_or_rounded_is_refused():
    plain = orders_spec()
    for changes in ({"move": MoveConfig(**ROLLUP)}, {"merge_levels": (MergeLevel(**ROLLUP, name="1day"),)}):
        spec = replace(plain, **changes)
        require_purgeable(spec, NEW, ["customer", "ts"])
        with pytest.raises(SpecError, match="'amount' of table 'orders' is rolled up in OFFLINE"):
            require_purgeable(spec, NEW, ["customer", "amount"])
    rounds = replace(plain, move=MoveConfig(round_ms=60_000))
    require_purgeable(rounds, NEW, ["customer", "amount"])
    with pytest.raises(SpecError, match="'ts' of table 'orders' is rounded in OFFLINE"):
        require_purgeable(rounds, NEW, ["ts"])
    require_purgeable(plain, NEW, ["amount", "ts"])
    require_purgeable(plain, None, ["amount", "ts"])


def test_what_was_rolled_up_or_rounded_counts_when_the_config_says_it_no_more():
    once = NEW.with_task(MoveConfig(**ROLLUP)).with_task(MoveConfig(round_ms=60_000))
    for column, done in (("amount", "rolled up"), ("ts", "rounded")):
        with pytest.raises(SpecError, match=f"'{column}' of table 'orders' is {done} in OFFLINE"):
            require_purgeable(orders_spec(), once, ["customer", column])
    require_purgeable(orders_spec(), once, ["customer"])
