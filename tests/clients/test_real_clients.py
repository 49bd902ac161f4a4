"""Pinot's own clients against a real server: JDBC, Java, Go, StarTree's MCP server, Airflow's hooks.

`tests/clients/install` fetches them; what it could not fetch is skipped with that reason.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.serve.app import OFFLINE, SCHEMA, App

HERE = Path(__file__).resolve().parent
INSTALLED = Path(sys.prefix) / "clients"
pytestmark = [pytest.mark.process, pytest.mark.slow]


def client(name: str, path: Path) -> Path:
    """The path of an installed client, or a skip."""
    if not (INSTALLED / f"{name}.done").exists():
        pytest.skip(f"the {name} client is not installed: tests/clients/install")
    return path


def run(*command: str | Path, env: dict[str, str] | None = None) -> list[str]:
    """The lines that a client prints."""
    # What shortens Spark's start is not for other JVMs, and this project's modules are not for other environments.
    plain = {name: value for name, value in os.environ.items() if name not in ("JAVA_TOOL_OPTIONS", "PYTHONPATH")}
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=120, env={**plain, **(env or {})}
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout.splitlines()


def test_jdbc_and_java_from_the_controller(orders: App) -> None:
    jars = client("java", INSTALLED / "java")
    lines = run("java", "-cp", f"{jars}/*:{jars}/classes", "Clients", "127.0.0.1", str(orders.port))
    assert [line for line in lines if line.startswith("column ")]
    assert [line for line in lines if not line.startswith("column ")] == [
        "jdbc 1 ada 1.5 1000",
        "jdbc 2 ada 3.0 2000",
        "prepared 3",
        "table orders",
        "refused true",
        "controller 4",
        "broker 4",
    ]


def test_go_from_the_controller(orders: App) -> None:
    lines = run(client("go", INSTALLED / "go-client"), f"127.0.0.1:{orders.port}")
    assert lines == ["controller 4 ada", "broker 4 ada", "exceptions true"]


def test_startrees_mcp_server(orders: App) -> None:
    """Its tools, over the MCP protocol: schema and table are created, changed, listed and queried."""
    python = client("mcp", INSTALLED / "mcp" / "bin" / "python")
    config = {**OFFLINE, "tableName": "events", "segmentsConfig": {"timeColumnName": "ts", "schemaName": "events"}}
    documents = {"schema": {**SCHEMA, "schemaName": "events"}, "config": config, "segment": "orders_1000_2000_0"}
    env = {"PINOT_CONTROLLER_URL": orders.url, "PINOT_BROKER_URL": orders.url}
    lines = run(python, HERE / "mcp_calls.py", json.dumps(documents), env=env)
    answers = dict(json.loads(line) for line in lines if line.startswith("["))  # the others are its log
    assert answers["list_tables"] == ["orders"]
    assert answers["table_details"]["tableName"] == "orders"
    assert answers["segment_list"][0] == {"OFFLINE": ["orders_1000_2000_0"]}
    assert answers["segment_metadata_details"]["orders_1000_2000_0"]["segment.total.docs"] == "2"
    assert answers["index_column_details"]["segment.name"] == "orders_1000_2000_0"
    assert answers["tableconfig_schema_details"]["schema"]["schemaName"] == "orders"
    assert answers["read_query"] == [{"customer": "ada", "n": 4}]
    assert "successfully added" in answers["create_schema"]["status"]
    assert "successfully added" in answers["create_table_config"]["status"]
    assert "updated" in answers["update_table_config"]["status"]
    assert answers["get_schema"]["schemaName"] == "events"
    assert answers["get_table_config"]["tableName"] == "events_OFFLINE"


def test_airflows_broker_hook(orders: App) -> None:
    python = client("airflow", INSTALLED / "airflow" / "bin" / "python")
    env = {
        "AIRFLOW_CONN_PINOT_BROKER_DEFAULT": f"http://127.0.0.1:{orders.port}/query%2Fsql",
        "AIRFLOW_HOME": str(orders.home.home),
        "AIRFLOW__CORE__UNIT_TEST_MODE": "True",
    }
    lines = run(python, HERE / "airflow_calls.py", env=env)
    assert json.loads(lines[-1]) == {
        "records": [["ada", 4]],
        "first": [4],
        "uri": f"http://127.0.0.1:{orders.port}/query/sql",
    }
