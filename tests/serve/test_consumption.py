"""Pausing, resuming and sealing by Pinot's paths."""

import inspect

import pytest

from hybrid.kafka.topics import create_topic, produce
from hybrid.rpc.verbs import VERBS
from hybrid.serve.verbs import REJECTED_MAX
from tests.serve.app import CONSUMING, OFFLINE, REALTIME, SCHEMA, App


@pytest.mark.slow
def test_pause_and_resume(orders: App) -> None:
    assert orders.get("/tables/orders/pauseStatus")["pauseFlag"] is False
    paused = orders.ok("POST", "/tables/orders_REALTIME/pauseConsumption?comment=new%20producers")
    assert (paused["pauseFlag"], paused["comment"]) == (True, "new producers")
    assert paused["description"] == "Table 'orders' is paused (new producers)."
    assert paused["consumingSegments"] == [CONSUMING]
    assert orders.home.context.catalog.serving.pauses()["orders"].comment == "new producers"
    assert orders.get("/tables/orders/pauseStatus")["timestamp"].endswith("Z")
    resumed = orders.ok("POST", "/tables/orders/resumeConsumption?consumeFrom=lastConsumed")
    assert resumed["pauseFlag"] is False and resumed["description"] == "Table 'orders' is resumed."
    again = orders.ok("POST", "/tables/orders/resumeConsumption")
    assert again["description"] == "Table 'orders' was not paused; nothing to resume."


@pytest.mark.slow
def test_the_same_by_verbs(orders: App) -> None:
    assert VERBS["pause"].call(orders.home, table="orders", comment="why")["paused"] is True
    assert VERBS["pause_status"].call(orders.home, table="orders")["comment"] == "why"
    assert VERBS["resume"].call(orders.home, table="orders")["sentence"] == "Table 'orders' is resumed."


@pytest.mark.slow
def test_resuming_elsewhere_is_refused(orders: App) -> None:
    orders.ok("POST", "/tables/orders/pauseConsumption")
    assert "lose or double rows" in orders.refused("POST", "/tables/orders/resumeConsumption?consumeFrom=largest")[1]
    assert orders.get("/tables/orders/pauseStatus")["pauseFlag"] is True


@pytest.mark.slow
def test_tables_that_consume_nothing(app: App) -> None:
    app.ok("POST", "/schemas", SCHEMA)
    app.ok("POST", "/tables", OFFLINE)
    for method, path in (
        ("POST", "pauseConsumption"), ("POST", "resumeConsumption"), ("POST", "forceCommit"),
        ("GET", "pauseStatus"), ("GET", "consumingSegmentsInfo"),
    ):  # fmt: skip
        assert app.refused(method, f"/tables/orders/{path}") == (404, "Table 'orders' has no REALTIME half.")
        assert app.refused(method, f"/tables/orders_OFFLINE/{path}")[0] in {400, 404}


@pytest.mark.slow
def test_force_commit(orders: App) -> None:
    answer = orders.ok("POST", "/tables/orders/forceCommit")
    assert answer["forceCommitStatus"] == "SUCCESS"
    path = f"/tables/forceCommitStatus/{answer['forceCommitJobId']}"
    waiting = orders.get(path)
    assert waiting["segmentsYetToBeCommitted"] == [CONSUMING] and waiting["numberOfSegmentsYetToBeCommitted"] == 1
    runs = orders.home.context.catalog.runs
    run = runs.claim()
    assert run is not None and (run.verb, run.arguments) == ("seal", {"table": "orders", "name": None})
    runs.finish(run.id, "DONE", "Sealed it.", {"segments": [CONSUMING], "sentence": "Sealed it."})
    done = orders.get(path)
    assert (done["segmentsForceCommitted"], done["segmentsYetToBeCommitted"]) == ([CONSUMING], [])
    assert (done["tableName"], done["state"], done["result"]) == ("orders_REALTIME", "DONE", "Sealed it.")


@pytest.mark.slow
def test_force_commit_of_one(orders: App) -> None:
    orders.ok("POST", f"/tables/orders/forceCommit?segments={CONSUMING}")
    assert orders.home.runs()[0].arguments["name"] == CONSUMING
    assert orders.refused("POST", f"/tables/orders/forceCommit?segments={CONSUMING[:-1]}")[0] == 404
    assert orders.refused("POST", "/tables/orders/forceCommit?segments=a,b")[0] == 400
    assert orders.refused("POST", "/tables/orders/forceCommit?partitions=0")[0] == 400
    assert orders.refused("GET", "/tables/forceCommitStatus/nothing")[0] == 404


def test_consuming_segments_without_kafka(orders: App) -> None:
    (one,) = orders.get("/tables/orders/consumingSegmentsInfo")["_segmentToConsumingInfoMap"][CONSUMING]
    assert one["partitionOffsetInfo"] == {
        "currentOffsetsMap": {"0": "4"},
        "latestUpstreamOffsetMap": {"0": "UNKNOWN"},
        "recordsLagMap": {"0": "UNKNOWN"},
        "availabilityLagMsMap": {"0": "UNKNOWN"},
    }


@pytest.mark.kafka
@pytest.mark.spark
def test_consuming_segments_with_kafka(working: App, broker: str) -> None:
    working.ok("POST", "/schemas", SCHEMA)
    create_topic(broker, "orders-consuming")
    streams = {
        **REALTIME["tableIndexConfig"]["streamConfigs"],
        "stream.kafka.topic.name": "orders-consuming",
        "stream.kafka.consumer.prop.auto.offset.reset": "smallest",
    }
    given = {**REALTIME, "tableIndexConfig": {"streamConfigs": streams}}
    working.ok("POST", f"/tables?kafka={broker}", given)
    produce(broker, "orders-consuming", [b'{"order_id": 1, "ts": 1000}', b"no JSON"])
    working.home.table("orders").ingest_batch()
    produce(broker, "orders-consuming", [b'{"order_id": 2, "ts": 2000}'])
    working.home.context.catalog.serving.note_ingestion("orders", "INGESTING", None, 0)
    ((one,),) = working.get("/tables/orders/consumingSegmentsInfo")["_segmentToConsumingInfoMap"].values()
    assert one["consumerState"] == "CONSUMING" and one["lastConsumedTimestamp"] > 0
    assert one["partitionToOffsetMap"] == {"0": "2"}
    assert one["partitionOffsetInfo"]["latestUpstreamOffsetMap"] == {"0": "3"}
    assert one["partitionOffsetInfo"]["recordsLagMap"] == {"0": "1"}
    rejected = working.get("/tables/orders/rejected")
    assert rejected["total"] == 1 and len(rejected["rows"]) == 1
    assert {"topic": "orders-consuming", "partition": 0, "offset": 1, "value": "no JSON"}.items() <= (
        rejected["rows"][0].items()
    )
    assert working.get("/tables/orders/rejected?offset=1")["rows"] == []
    assert working.get("/tables/orders/rejected?limit=0") == {"total": 1, "rows": []}
    job = working.ok("POST", "/tables/orders/forceCommit")["forceCommitJobId"]
    found = working.until_ended(f"/tables/forceCommitStatus/{job}")
    assert found["numberOfSegmentsYetToBeCommitted"] == 0 and len(found["segmentsForceCommitted"]) == 1
    assert working.get("/tables/orders/consumingSegmentsInfo")["_segmentToConsumingInfoMap"] == {}

    produce(broker, "orders-consuming", [b'{"order_id": 3, "amount": "much", "ts": 3000}'])
    working.home.table("orders").ingest_batch()
    path = "/tables/orders/rejected"
    assert working.refused("POST", "/tables/orders_OFFLINE/rejected/replay")[0] == 404
    assert working.ok("POST", f"{path}/replay", {"dryRun": True})["sentence"].startswith("Nothing to replay: none of 2")
    working.ok("PUT", "/tables/orders", {**given, "ingestionConfig": {"continueOnError": True}})
    working.ok("POST", "/tables", OFFLINE)
    plan = working.ok("POST", "/backfills", {"table": "orders", "from": "3000", "to": "4000", "fromRejected": True})
    assert (plan["buckets"][0]["added"], plan["change"]) == (1, "rejected rows that convert now")
    working.ok("POST", f"/backfills/{plan['id']}/resume")
    assert working.get(path)["total"] == 1 and working.ok("POST", f"{path}/replay")["replayed"] == 0
    working.ok("POST", f"/backfills/{plan['id']}/revert")
    assert working.get(path)["total"] == 2 and working.get(f"/backfills/{plan['id']}")["taken"] == 0
    report = working.ok("POST", f"{path}/replay")
    assert (report["replayed"], report["rows"], report["left"]) == (1, 1, 1) and report["version"]
    found = working.get(path)
    assert found["total"] == 1 and [row["offset"] for row in found["rows"]] == [1]
    everything = working.get(f"{path}?all=true")
    assert everything["total"] == 2 and [row["state"] for row in everything["rows"]] == ["rejected", "replayed"]
    answer = working.ok("POST", "/query/sql", {"sql": "select order_id from orders order by order_id"})
    assert answer["resultTable"]["rows"] == [[1], [2], [3]]


@pytest.mark.slow
def test_rejected_by_the_verb_has_the_verbs_own_defaults(orders: App, monkeypatch: pytest.MonkeyPatch) -> None:
    defaults = inspect.signature(VERBS["rejected"].call).parameters
    asked = []

    def read(files: object, limit: int, offset: int, *, everything: bool, bounds: object) -> list[object]:
        asked.append((limit, everything))
        return []

    monkeypatch.setattr("hybrid.operations.rejected_rows.read_rejected", read)
    for more in ({}, {"limit": 5}, {"limit": 10**9, "everything": True}):
        assert orders.ok("POST", "/verbs/rejected", {"table": "orders", **more}) == []
    assert asked == [(defaults["limit"].default, defaults["everything"].default), (5, False), (REJECTED_MAX, True)]
