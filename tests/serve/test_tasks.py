"""`/tasks`: Pinot's paths and words over our runs."""

import re

import pytest

from hybrid.catalog.run_record import RunRequest
from hybrid.config.retention_json import RETENTION_TASK as RETENTION
from hybrid.config.task_schedules import OPTIMIZE_TASK as OPTIMIZE
from hybrid.config.task_schedules import VACUUM_TASK as VACUUM
from tests.serve.app import MOVE, OFFLINE, SCHEMA, App


@pytest.mark.slow
def test_a_task_is_scheduled_once(orders: App) -> None:
    answer = orders.ok("POST", f"/tasks/schedule?taskType={MOVE}&tableName=orders_REALTIME")
    assert list(answer) == [MOVE] and re.fullmatch(rf"Task_{MOVE}_\d{{13}}", answer[MOVE])
    again = orders.ok("POST", f"/tasks/schedule?taskType={MOVE}&tableName=orders")
    assert again[MOVE] is None and "incomplete run of this task already" in again["schedulingErrors"]
    run = orders.home.run(answer[MOVE])
    assert (run.verb, run.arguments, run.source) == ("task_run", {"table": "orders", "type": MOVE}, "http")
    assert len(orders.home.runs()) == 1


@pytest.mark.slow
def test_all_tables_and_types(orders: App) -> None:
    orders.ok("POST", "/schemas", {**SCHEMA, "schemaName": "plain"})
    orders.ok("POST", "/tables", {**OFFLINE, "tableName": "plain", "segmentsConfig": {"schemaName": "plain"}})
    answer = orders.ok("POST", "/tasks/schedule")
    assert [run.id for run in orders.home.runs("orders")] == [answer[MOVE]]
    assert orders.refused("POST", "/tasks/schedule?tableName=plain")[0] == 400
    orders.ok("DELETE", "/tables/orders")
    assert orders.ok("POST", "/tasks/schedule") == {MOVE: None, "schedulingErrors": f"No table has a {MOVE}."}


@pytest.mark.slow
def test_what_is_not_there(orders: App) -> None:
    assert orders.refused("POST", "/tasks/schedule?tableName=order")[1].endswith("Did you mean 'orders'?")
    assert orders.refused("POST", f"/tasks/schedule?taskType={MOVE[:-1]}")[1].endswith(f"Did you mean '{MOVE}'?")
    assert "not built yet" in orders.refused("POST", "/tasks/schedule?taskType=PurgeTask")[1]
    assert orders.refused("GET", "/tasks/nothing/state")[0] == 404
    assert orders.refused("GET", "/tasks/task/nothing/state")[0] == 404
    assert orders.refused("GET", "/tasks/task/nothing/debug")[0] == 404


@pytest.mark.slow
@pytest.mark.parametrize(("ended", "word"), [("DONE", "COMPLETED"), ("NOTHING", "COMPLETED"), ("FAILED", "FAILED")])
def test_states_in_pinots_words(orders: App, ended: str, word: str) -> None:
    upkeep = [RETENTION, "MergeRollupTask", "UpsertCompactionTask", OPTIMIZE, VACUUM]
    assert orders.get("/tasks/tasktypes") == [MOVE, *upkeep]
    assert orders.get(f"/tasks/{MOVE}/state") == "NOT_STARTED"
    task = orders.ok("POST", "/tasks/schedule")[MOVE]
    assert orders.get(f"/tasks/task/{task}/state") == "NOT_STARTED"
    runs = orders.home.context.catalog.runs
    assert runs.claim() is not None
    runs.tell(task, "Reading 7 rows.")
    assert orders.get(f"/tasks/task/{task}/state") == "IN_PROGRESS" == orders.get(f"/tasks/{MOVE}/state")
    going = orders.get(f"/tasks/task/{task}/debug")
    assert (going["progress"], going["subtaskInfos"][0]["info"]) == ("Reading 7 rows.", "Reading 7 rows.")
    runs.finish(task, ended, "A sentence.")
    assert orders.get(f"/tasks/{MOVE}/taskstates") == {task: word}
    assert orders.get(f"/tasks/{MOVE}/tasks") == [task]
    debug = orders.get(f"/tasks/task/{task}/debug")
    assert (debug["taskState"], debug["result"], debug["table"]) == (word, "A sentence.", "orders")
    assert debug["startTime"] <= debug["executionStartTime"] <= debug["finishTime"]
    assert orders.ok("POST", "/tasks/schedule")[MOVE] not in {None, task}


@pytest.mark.slow
def test_schedules(orders: App) -> None:
    told = {found["type"]: found["schedule"] for found in orders.get("/tasks/schedules")}
    assert told == {OPTIMIZE: "0 41 * * * ?", VACUUM: "0 17 0/6 * * ?"}
    config = orders.get("/tables/orders")["REALTIME"]
    config["metadata"] = {"customConfigs": {"hybrid.optimizeSchedule": "never", "hybrid.vacuumSchedule": "Never"}}
    config["task"]["taskTypeConfigsMap"][MOVE]["schedule"] = "0 0/5 * * * ?"
    orders.ok("PUT", "/tables/orders", config)
    (found,) = orders.get("/tasks/schedules?tableName=orders_REALTIME")
    assert (found["table"], found["state"], found["schedule"]) == ("orders", "WAITING", "0 0/5 * * * ?")
    assert orders.refused("GET", "/tasks/schedules?tableName=order")[0] == 404


@pytest.mark.slow
def test_retention_is_a_task_of_tables_that_have_one(orders: App) -> None:
    refused = orders.refused("POST", f"/tasks/schedule?taskType={RETENTION}&tableName=orders")
    assert refused[0] == 400 and "has no retention: it keeps its rows for ever" in refused[1]
    none = {RETENTION: None, "schedulingErrors": f"No table has a {RETENTION}."}
    assert orders.ok("POST", f"/tasks/schedule?taskType={RETENTION}") == none
    config = orders.get("/tables/orders")["OFFLINE"]
    config["segmentsConfig"].update(retentionTimeUnit="DAYS", retentionTimeValue="5")
    orders.ok("PUT", "/tables/orders", config)
    assert list(orders.ok("POST", "/tasks/schedule?tableName=orders")) == [MOVE], "who names none asks for moves"
    answer = orders.ok("POST", f"/tasks/schedule?taskType={RETENTION}&tableName=orders")
    assert list(answer) == [RETENTION] and re.fullmatch(rf"Task_{RETENTION}_\d{{13}}", answer[RETENTION])
    run = orders.home.run(answer[RETENTION])
    assert (run.type, run.verb, run.arguments) == (RETENTION, "task_run", {"table": "orders", "type": RETENTION})
    again = orders.ok("POST", f"/tasks/schedule?taskType={RETENTION}")
    assert again[RETENTION] is None and "incomplete run of this task already" in again["schedulingErrors"]
    (found,) = (one for one in orders.get("/tasks/schedules") if one["type"] == RETENTION)
    assert (found["schedule"], found["state"]) == ("0 0 0/6 * * ?", "QUEUED")


@pytest.mark.slow
def test_upkeep_is_a_task_of_every_table_and_runs_when_it_is_named(orders: App) -> None:
    orders.ok("POST", "/schemas", {**SCHEMA, "schemaName": "plain"})
    orders.ok("POST", "/tables", {**OFFLINE, "tableName": "plain", "segmentsConfig": {"schemaName": "plain"}})
    queued = orders.ok("POST", f"/tasks/schedule?taskType={VACUUM}")[VACUUM].split(",")
    assert {orders.home.run(run).table_name for run in queued} == {"orders", "plain"}
    assert len(orders.ok("POST", f"/tasks/schedule?taskType={OPTIMIZE}")[OPTIMIZE].split(",")) == 1
    refused = orders.refused("POST", f"/tasks/schedule?taskType={OPTIMIZE}&tableName=plain")
    assert refused[0] == 400 and "it has no REALTIME half" in refused[1]


@pytest.mark.slow
def test_arguments_with_secrets_are_not_answered_nor_kept(orders: App) -> None:
    secret = {
        "table": "orders",
        "type": MOVE,
        "spec": "secretKey: VERYSECRET",
        "where": "name = 'VERYSECRET'",
        "documents": {"configs": [{"sasl.password": "VERYSECRET"}]},
        "name": {"a": "VERYSECRET"},
    }
    runs = orders.home.context.catalog.runs
    queued = runs.enqueue(RunRequest("job_1", "orders", "job", "job_run", secret, "http"))
    assert queued is not None and "VERYSECRET" not in repr(queued)
    for end in (None, "DONE", "FAILED"):
        if end is not None:
            runs.finish("job_1", end, "A sentence.")
            ended = runs.find("job_1")
            assert ended is not None and ended.arguments == {"table": "orders", "type": MOVE}
        paths = ("/tasks/task/job_1/debug", "/runs/job_1", "/jobs", "/jobs/job_1")
        assert not [path for path in paths if "VERYSECRET" in str(orders.get(path))]
        assert "VERYSECRET" not in str(orders.ok("POST", "/verbs/runs", {}))
    assert orders.get("/tasks/task/job_1/debug")["subtaskInfos"][0]["taskConfig"]["configs"] == {
        "table": "orders", "type": MOVE,
    }  # fmt: skip


@pytest.mark.slow
def test_an_unknown_type_is_refused_before_it_is_queued(orders: App) -> None:
    status, refused = orders.call("POST", "/verbs/task_run", {"table": "orders", "type": "MoveTask"})
    assert status == 404 and "Types are: RealtimeToOfflineSegmentsTask" in refused["hint"]
    assert orders.refused("POST", "/tasks/schedule?taskType=MoveTask")[0] == 404
    assert orders.home.runs() == []
