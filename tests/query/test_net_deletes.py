"""Tables without a key whose stream deletes: of equal rows as many are visible as inserts outnumber deletes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hybrid.config.table_config import MessageFormat, StreamConfig
from hybrid.query.tail import TailMessage
from hybrid.schema.schema import Schema
from hybrid.table.boundary import INFINITE, Boundary, PartitionKey
from tests.examples import examples
from tests.query.halves import Halves, ListTail, Row, orders_spec

Ask = Callable[..., Any]
LIVE = PartitionKey("live", "orders", 0, 0)
STREAM = StreamConfig(("orders",), "127.0.0.1:1", connector="live", message=MessageFormat.CHANGE)
ALL = "select order_id, customer, amount from {} limit 1000"
STARTED = {"progress": {"live": {"started_at": "2021-09-24T06:02:31.000+00:00"}}}


def keyless() -> Any:
    spec = orders_spec(time_column=None)
    fields = tuple(field for field in spec.schema.fields if field.name != "ts")
    return replace(spec, stream=STREAM, null_handling=True, schema=Schema("orders", fields))


def values(number: int, customer: str | None = "a") -> dict[str, object]:
    return {"order_id": number, "customer": customer, "amount": number * 1.5}


def stored(op: str, number: int, customer: str | None, offset: int, segment: str = "orders__0__0__x") -> Row:
    return Row(values(number, customer), None, offset, LIVE, op=op, segment=segment)


def message(op: str, number: int, customer: str | None, offset: int) -> TailMessage:
    verb = {"row": "insert", "delete": "delete"}[op]
    return TailMessage(LIVE, offset, 0, json.dumps({verb: values(number, customer)}).encode())


changes = st.lists(
    st.tuples(st.sampled_from(["row", "row", "delete"]), st.integers(1, 3), st.sampled_from(["a", "b", None])),
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=examples(20), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=changes, live=changes, moved=st.integers(0, 12), committed=st.integers(0, 12))
def test_inserts_less_deletes_over_both_halves_and_the_tail(
    tmp_path_factory: Any, ask: Ask, history: Any, live: Any, moved: int, committed: int
) -> None:
    history = [change for change in history if change[0] == "row"]
    committed, moved = min(committed, len(live)), min(moved, committed, len(live))
    halves = Halves.create(tmp_path_factory.mktemp("net"), keyless())
    past = [stored(*change, offset, "orders_0") for offset, change in enumerate(history)]
    halves.commit_offline([replace(row, key=PartitionKey("old", "history", 0, 0)) for row in past], Boundary(INFINITE))
    rows = [stored(*change, offset) for offset, change in enumerate(live)]
    deletes = sum(op == "delete" for op, *_ in live[:committed])
    halves.commit_realtime(rows[:committed], offsets={LIVE: committed}, deletes=deletes, **STARTED)
    halves.commit_offline([replace(row, segment="orders_1") for row in rows[:moved]], Boundary(INFINITE, {LIVE: moved}))
    tail = ListTail([message(*change, offset) for offset, change in enumerate(live)])
    seen = Counter((row[0], row[1]) for row in ask(halves, ALL.format("orders"), tail).rows)
    counts: Counter[Any] = Counter()
    for op, number, customer in [*history, *live]:
        counts[number, customer] += 1 if op == "row" else -1
    assert seen == Counter({key: count for key, count in counts.items() if count > 0})
    some = ask(halves, "select count(*) from orders where customer = 'a' and order_id < 3", tail).rows
    assert some == [(sum(count for (number, name), count in seen.items() if name == "a" and number < 3),)]
    kept = Counter((row[0], row[1]) for row in ask(halves, ALL.format("orders_OFFLINE"), tail).rows)
    assert all(count <= seen[key] + sum(1 for op, *what in live if op == "delete" and tuple(what) == key)
               for key, count in kept.items())  # fmt: skip


def test_virtual_columns_of_what_is_left(tmp_path: Any, ask: Ask) -> None:
    halves = Halves.create(tmp_path, keyless())
    rows = [stored("row", 1, "a", 0), stored("row", 1, "a", 1), stored("delete", 1, "a", 2), stored("row", 2, "b", 3)]
    halves.commit_realtime(rows, offsets={LIVE: 4}, deletes=1, **STARTED)
    found = ask(halves, "select $offset, order_id from orders order by $offset").rows
    assert found == [(1, 1), (3, 2)], "the delete takes the first"
