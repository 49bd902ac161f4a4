"""A change with a parameter that its path does not read is refused: it would do more than was meant."""

import pytest

from tests.serve.app import App

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("request_line", "name", "more"),
    [
        ("DELETE /tables/orders?tableType=REALTIME", "tableType", "DELETE /tables/{table} takes type."),
        ("DELETE /tables/orders?type=OFFLINE&dryRun=true", "dryRun", "takes type."),
        ("DELETE /schemas/orders?dryRun=true", "dryRun", "DELETE /schemas/{schema} takes no parameters."),
        ("POST /tasks/schedule?taskType=RetentionManager&table=orders", "table", "takes taskType, tableName."),
        ("POST /tasks/schedule?taskType=RetentionManager&dryRun=true", "dryRun", "takes taskType, tableName."),
        ("POST /tasks/schedule?taskType=RetentionManager&tablename=orders", "tablename", "takes taskType, tableName."),
        ("POST /tables/orders/forceCommit?partition=0", "partition", "takes segments, partitions."),
        ("POST /jobs?dryRun=true", "dryRun", "takes wait."),
        ("POST /jobs?force=true", "force", "takes wait."),  # Pinot has no such path
    ],
)
def test_a_parameter_that_is_not_read_changes_nothing(orders: App, request_line: str, name: str, more: str) -> None:
    status, error = orders.call(*request_line.split(" "))
    assert status == 400 and error["error"].startswith(f"'{name}' is no parameter here."), error
    assert error["error"].endswith("Nothing was changed.") and error["hint"].endswith(more), error
    assert orders.get("/tables/orders").keys() == {"REALTIME", "OFFLINE"}
    assert list(orders.home.runs()) == []


def test_a_misspelt_parameter_is_named(orders: App) -> None:
    assert "Did you mean 'tableName'?" in orders.refused("POST", "/tasks/schedule?tablename=orders")[1]


def test_parameters_of_pinots_controller_have_no_effect(orders: App) -> None:
    path = "/tasks/schedule?tableName=orders&minionInstanceTag=x&database=default"
    assert orders.ok("POST", path)["RealtimeToOfflineSegmentsTask"]
    assert orders.ok("POST", "/segments/orders/reload?type=OFFLINE&forceDownload=true")
    assert orders.ok("POST", "/segments/orders/reset?errorSegmentsOnly=true&targetInstance=x")
    assert orders.ok("DELETE", "/tables/orders?retention=0d&ignoreActiveTasks=true")


def test_what_only_reads_ignores_them(orders: App) -> None:
    assert orders.ok("POST", "/sql?trace=true", {"sql": "select 1"})["exceptions"] == []
    assert orders.ok("GET", "/tables/orders?tableType=REALTIME")
