"""The recipes as guided tours: what each step shows, and the command that does it. `{name}` is filled by the tour."""

from __future__ import annotations

from dataclasses import dataclass

ORDERED = "select $segmentName, * from orders order by order_id limit 20"
TOTALS = "select count(*), sum(amount) from orders"
FIRST_SEGMENT = "orders_1632463351000_1632467070000_0"


@dataclass(frozen=True)
class Step:
    """One step: a sentence, and the words after `hybrid` on the command line."""

    says: str
    command: tuple[str, ...]


def _create(recipe: str) -> list[Step]:
    files = f"{{data}}/{recipe}"
    return [
        Step("A topic on the local Kafka broker.", ("kafka", "topic", "create", "orders")),
        Step(
            "A logical table with a REALTIME and an OFFLINE half, from Pinot's own files.",
            (
                *("table", "create", "--schema", f"{files}/orders_schema.json"),
                *("--config", f"{files}/orders_table.json", "--config", f"{files}/orders_offline_table.json"),
                *("--kafka", "{kafka}"),
            ),
        ),
        Step("14 events arrive in Kafka.", ("kafka", "produce", "orders", f"{files}/events.jsonl")),
    ]


def _job(recipe: str) -> tuple[str, ...]:
    return (
        *("job", "run", f"{{job_specs}}/{recipe}/job-spec.yml"),
        *("--var", f"segmentName={FIRST_SEGMENT}", "--input", f"{{data}}/{recipe}/corrected"),
    )


def _correct(job: tuple[str, ...]) -> list[Step]:
    return [
        Step("Correct history: what would the corrected file change?", (*job, "--dry-run")),
        Step("Put it in place of the offline segment, in one atomic swap.", job),
        Step("The corrected rows, visible at once; the segment's name is unchanged.", ("query", ORDERED)),
        Step("The totals after the correction.", ("query", TOTALS)),
        Step("The same job once more changes nothing.", job),
        Step("What was replaced, by which file, and whether it can be reverted.", ("replacement", "list", "orders")),
    ]


ORDERS = [
    *_create("orders"),
    Step("They can be queried at once, before any segment is written.", ("query", TOTALS)),
    Step("Write them to realtime segments of 5 rows each (Spark).", ("ingest", "orders", "--until-caught-up")),
    Step("Two sealed segments and one that is still consuming.", ("segment", "list", "orders")),
    Step("Move the first closed time bucket to the OFFLINE half.", ("move", "orders")),
    Step("It is an offline segment now; every row is still seen once.", ("query", ORDERED)),
    Step("Which realtime rows the offline half has taken over.", ("boundary", "show", "orders")),
    *_correct(_job("orders")),
    Step("Move what is left, bucket by bucket.", ("move", "orders", "--max-buckets", "all")),
    Step("Once more: it says why there is nothing to do.", ("move", "orders")),
    Step("All segments, and still 14 rows.", ("segment", "list", "orders")),
    Step("The totals.", ("query", TOTALS)),
    Step("What ran.", ("task", "list", "orders")),
]

LATER_EVENT = "later.jsonl"

ORDERS_UPSERT = [
    *_create("orders_upsert"),
    Step("14 events, 9 orders: one row per order_id, the latest.", ("query", ORDERED)),
    Step("Write them to realtime segments of 5 rows each (Spark).", ("ingest", "orders", "--until-caught-up")),
    Step("Move the first closed time bucket: 7 events become the 4 latest rows.", ("move", "orders")),
    Step("The offline half holds orders 1 to 4.", ("query", "select * from orders_OFFLINE order by order_id")),
    Step("The whole table still shows 9 rows.", ("query", ORDERED)),
    Step(
        "The recipe's correction: the latest row of each order. The move has merged to these, so nothing is to change.",
        _job("orders_upsert"),
    ),
    Step("A later event for order 1 arrives.", ("kafka", "produce", "orders", "{home}/" + LATER_EVENT)),
    Step("Still 9 rows, order 1 in its new state.", ("query", ORDERED)),
]

RECIPES = {"orders": ORDERS, "orders_upsert": ORDERS_UPSERT}
LATER_EVENTS = {
    "orders_upsert": '{"order_id":1,"customer_id":104,"order_status":"RETURNED","amount":29.35,"ts":"1632681000000"}\n'
}
