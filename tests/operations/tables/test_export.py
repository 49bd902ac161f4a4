"""A table's documents are exported in the form that `table apply` takes: apply then has nothing to change."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

import hybrid
from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.cli.main import run
from hybrid.config.table_config import StreamConfig
from hybrid.errors import ConflictError, DataError, SpecError
from hybrid.kafka.streams import StreamView
from hybrid.operations.tables import create as creation
from hybrid.operations.tables.export import write_export
from hybrid.schema.secrets import HIDDEN
from tests.operations.tables.test_change import given
from tests.serve.app import OFFLINE, REALTIME, SCHEMA

DATA = Path(__file__).resolve().parents[3] / "data" / "orders"
PLAIN, REFERENCE = "VERYSECRET", "${env:SHOP_PASSWORD}"
DDL = """CREATE TABLE Riders (id INTEGER NOT NULL PRIMARY KEY, fee DECIMAL(8, 2), at TIMESTAMP) WITH ('connectors' =
 '[{"labels": ["live"], "transport": {"name": "kafka_input", "config": {"topic": "riders", "start_from": "earliest"}},
 "format": {"name": "json"}}]');"""


def secured(**streams: str) -> TableDocuments:
    """A table with both halves whose stream has these options too."""
    config = {**REALTIME, "tableIndexConfig": {"streamConfigs": {**_STREAM, **streams}}}
    return TableDocuments((SCHEMA, "schema"), [(config, "config"), (OFFLINE, "config")])


_STREAM = REALTIME["tableIndexConfig"]["streamConfigs"]
_BY_TIME = {**OFFLINE, "metadata": {"customConfigs": {"hybrid.boundary": "pinot", "hybrid.revertWindow": "1d"}}}
_LOGIN = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def by_jaas(password: str) -> dict[str, str]:
    return {**_LOGIN, "sasl.jaas.config": f'{_MODULE} username="shop" password="{password}";'}


def ddl(folder: Path) -> TableDocuments:
    path = folder / "riders.sql"
    path.write_text(DDL, encoding="utf-8")
    return TableDocuments.from_ddl(path, "127.0.0.1:1")[0].documents


def recipe(*configs: str) -> TableDocuments:
    return TableDocuments.read(DATA / "orders_schema.json", [DATA / name for name in configs], kafka="127.0.0.1:1")


KINDS: dict[str, Callable[[Path], TableDocuments]] = {
    "offline": lambda _: given("INT"),
    "hybrid": lambda _: recipe("orders_table.json", "orders_offline_table.json"),
    "realtime": lambda _: recipe("orders_table.json"),
    "other brokers": lambda _: TableDocuments((SCHEMA, "s"), [(REALTIME, "r"), (OFFLINE, "o")], kafka="other:1"),
    "set": lambda _: TableDocuments((SCHEMA, "s"), [(REALTIME, "r")], overrides=("bucketTimePeriod=6h",)),
    "ddl": ddl,
    "own keys": lambda _: TableDocuments((SCHEMA, "s"), [(REALTIME, "r"), (_BY_TIME, "o")]),
    "reference": lambda _: secured(**by_jaas(REFERENCE)),
}


@pytest.fixture
def hy(home: Path, monkeypatch: pytest.MonkeyPatch) -> Hybrid:
    """A home whose brokers answer."""

    def view(stream: StreamConfig) -> StreamView:
        return StreamView({}, {}, {})

    monkeypatch.setattr(creation, "view_stream", view)
    return hybrid.connect(home)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_apply_of_an_export_changes_nothing(
    kind: str, hy: Hybrid, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = hy.create_table(KINDS[kind](tmp_path)).table
    before = hy.context.definitions.find(table)
    words = ["--home", str(hy.home), "table"]
    assert hy.apply_table(hy.table(table).export().documents()).sentence.startswith("Nothing to change")

    assert run([*words, "export", table]) == 0
    out = capsys.readouterr().out
    path = tmp_path / "export.json"
    path.write_text(out, encoding="utf-8")
    assert run([*words, "apply", "-f", str(path)]) == 0
    assert "Nothing to change" in capsys.readouterr().err

    assert run([*words, "export", table, "-o", str(tmp_path / "made")]) == 0
    files = {path.name: str(path) for path in (tmp_path / "made").iterdir()}
    schema = files.pop(f"{table}_schema.json")
    configs = [word for config in files.values() for word in ("--config", config)]
    assert run([*words, "apply", "--schema", schema, *configs]) == 0
    assert "Nothing to change" in capsys.readouterr().err
    assert hy.context.definitions.find(table) == before


def test_another_home_gets_the_same_table(hy: Hybrid, tmp_path: Path) -> None:
    hy.create_table(KINDS["hybrid"](tmp_path))
    other = hybrid.connect(tmp_path / "other")
    made = hy.table("orders").export()
    other.create_table(made.documents())
    assert other.table("orders").export().to_json() == made.to_json()
    other.close()


@pytest.mark.parametrize("reference", [REFERENCE, "${file:/run/secrets/kafka}"])
def test_references_stay(reference: str, hy: Hybrid) -> None:
    hy.create_table(secured(**by_jaas(reference)))
    found = hy.table("orders").export()
    assert reference in json.dumps(found.to_json()) and not found.hidden


@pytest.mark.parametrize("password", [PLAIN, f"{PLAIN}{REFERENCE}"])
def test_plain_secrets_are_hidden_and_named(password: str, hy: Hybrid, capsys: pytest.CaptureFixture[str]) -> None:
    hy.create_table(secured(**by_jaas(password)))
    place = "tableIndexConfig.streamConfigs.sasl.jaas.config"
    assert run(["--home", str(hy.home), "table", "export", "orders"]) == 0
    said = capsys.readouterr()
    assert PLAIN not in said.out + said.err and HIDDEN in said.out
    assert f"warning: realtime.{place} is a secret and is left out" in said.err
    with pytest.raises(SpecError, match="is hidden where it was shown"):
        hy.apply_table(hy.table("orders").export().documents())


def test_no_file_is_replaced(hy: Hybrid, tmp_path: Path) -> None:
    hy.create_table(given("INT"))
    made = hy.table("orders").export()
    paths = made.write(tmp_path / "a" / "b")
    assert [path.name for path in paths] == ["orders_schema.json", "orders_offline_table.json"]
    paths[0].unlink()
    with pytest.raises(ConflictError, match=r"orders_offline_table.json exists already. Nothing was written"):
        made.write(tmp_path / "a" / "b")
    assert not paths[0].exists()
    with pytest.raises(ConflictError, match="is not a folder"):
        made.write(paths[1])
    with pytest.raises(DataError, match=r"is no name of a table\. Nothing was written"):
        write_export({"tableName": "../orders", "schema": {}}, tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_what_is_printed_is_safe_for_a_terminal(hy: Hybrid, capsys: pytest.CaptureFixture[str]) -> None:
    hy.create_table(given("INT", description="caf\u00e9 \u009b31m \u202e \x1b[31m \x7f"))
    assert run(["--home", str(hy.home), "table", "export", "orders"]) == 0
    out = capsys.readouterr().out
    assert "caf\u00e9" in out and not set(out) & {"\u009b", "\u202e", "\x1b", "\x7f"}
    assert json.loads(out) == hy.table("orders").export().to_json()


def test_what_is_no_export_is_named(hy: Hybrid, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(OFFLINE), encoding="utf-8")
    assert run(["--home", str(hy.home), "table", "apply", "-f", str(path)]) == 1
    said = capsys.readouterr().err
    assert "schema: is missing" in said and "hybrid table export TABLE" in said
    assert run(["--home", str(hy.home), "table", "export", "ordrs"]) == 1
    assert "does not exist" in capsys.readouterr().err
