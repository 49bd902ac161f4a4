"""The recipes as guided tours: a sentence and a command per step. The tour substitutes `{name}`."""

from __future__ import annotations

from dataclasses import dataclass

ORDERED = "select $segmentName, * from orders order by order_id limit 20"
TOTALS = "select count(*), sum(amount) from orders"
FIRST_SEGMENT = "orders_1632463351000_1632467070000_0"


@dataclass(frozen=True)
class RecipeStep:
    """One step: a sentence and the arguments of `hybrid`."""

    says: str
    command: tuple[str, ...]


def _create(recipe: str) -> list[RecipeStep]:
    files = f"{{data}}/{recipe}"
    return [
        RecipeStep("A topic on the local Kafka broker.", ("kafka", "topic", "create", "orders")),
        RecipeStep(
            "A logical table with a REALTIME and an OFFLINE half, from Pinot's own files.",
            (
                *("table", "create", "--schema", f"{files}/orders_schema.json"),
                *("--config", f"{files}/orders_table.json", "--config", f"{files}/orders_offline_table.json"),
                *("--kafka", "{kafka}"),
            ),
        ),
        RecipeStep("14 events arrive in Kafka.", ("kafka", "produce", "orders", f"{files}/events.jsonl")),
    ]


def _job(recipe: str) -> tuple[str, ...]:
    return (
        *("job", "run", f"{{job_specs}}/{recipe}/job-spec.yml"),
        *("--var", f"segmentName={FIRST_SEGMENT}", "--input", f"{{data}}/{recipe}/corrected"),
    )


def _correct(job: tuple[str, ...]) -> list[RecipeStep]:
    return [
        RecipeStep("Correct history: what would the corrected file change?", (*job, "--dry-run")),
        RecipeStep("Put it in place of the offline segment, in one atomic swap.", job),
        RecipeStep("The corrected rows, visible at once; the segment's name is unchanged.", ("query", ORDERED)),
        RecipeStep("The totals after the correction.", ("query", TOTALS)),
        RecipeStep("The same job once more changes nothing.", job),
        RecipeStep(
            "What was replaced, by which file, and whether it can be reverted.", ("replacement", "list", "orders")
        ),
    ]


ORDERS = [
    *_create("orders"),
    RecipeStep("They can be queried at once, before any segment is written.", ("query", TOTALS)),
    RecipeStep("Write them to realtime segments of 5 rows each (Spark).", ("ingest", "orders", "--until-caught-up")),
    RecipeStep("Two sealed segments and one that is still consuming.", ("segment", "list", "orders")),
    RecipeStep("Move the first closed time bucket to the OFFLINE half.", ("move", "orders")),
    RecipeStep("It is an offline segment now; every row is still seen once.", ("query", ORDERED)),
    RecipeStep("Which realtime rows the offline half has taken over.", ("boundary", "show", "orders")),
    *_correct(_job("orders")),
    RecipeStep("Move what is left, bucket by bucket.", ("move", "orders", "--max-buckets", "all")),
    RecipeStep("Once more: it says why there is nothing to do.", ("move", "orders")),
    RecipeStep("All segments, and still 14 rows.", ("segment", "list", "orders")),
    RecipeStep("The totals.", ("query", TOTALS)),
    RecipeStep("What ran.", ("task", "list", "orders")),
]

LATER_EVENT = "later.jsonl"

ORDERS_UPSERT = [
    *_create("orders_upsert"),
    RecipeStep("14 events, 9 orders: one row per order_id, the latest.", ("query", ORDERED)),
    RecipeStep("Write them to realtime segments of 5 rows each (Spark).", ("ingest", "orders", "--until-caught-up")),
    RecipeStep("Move the first closed time bucket: 7 events become the 4 latest rows.", ("move", "orders")),
    RecipeStep("The offline half holds orders 1 to 4.", ("query", "select * from orders_OFFLINE order by order_id")),
    RecipeStep("The whole table still shows 9 rows.", ("query", ORDERED)),
    RecipeStep(
        "The recipe's correction: the latest row of each order. The move has merged to these, so nothing is to change.",
        _job("orders_upsert"),
    ),
    RecipeStep("A later event for order 1 arrives.", ("kafka", "produce", "orders", "{home}/" + LATER_EVENT)),
    RecipeStep("Still 9 rows, order 1 in its new state.", ("query", ORDERED)),
]

RECIPES = {"orders": ORDERS, "orders_upsert": ORDERS_UPSERT}
LATER_EVENTS = {
    "orders_upsert": '{"order_id":1,"customer_id":104,"order_status":"RETURNED","amount":29.35,"ts":"1632681000000"}\n'
}
