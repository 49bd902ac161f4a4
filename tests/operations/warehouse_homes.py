"""Homes with tables of rows written by hand, whose warehouse is on a real S3 server; and kills between two steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.config.table_config import Half, TableSpec
from hybrid.config.table_documents import TableDocuments
from hybrid.doctor.examine import examine
from hybrid.home.home import Home
from hybrid.lake.commit_context import new_act_id
from hybrid.lake.create import arrow_schema, record_batch
from hybrid.lake.files import RowsFile, path_in_half
from hybrid.lake.layout import physical_columns, statistics_columns
from hybrid.lake.log import open_half
from hybrid.lake.transaction import LogTransaction
from hybrid.operations.tables.create import create_table
from hybrid.operations.warehouse.follow import WarehouseFollower
from hybrid.operations.warehouse.pull import pull_warehouse
from hybrid.operations.warehouse.sync import warehouse_status
from hybrid.progress import Silent
from hybrid.store.mirror import Mirror, mirror_at
from hybrid.table.columns import SEGMENT
from hybrid.table.state import next_act
from tests.mirrors import new_url
from tests.s3_server import S3Server, s3_server

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"


class Killed(BaseException):
    """As if the process had died here."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3") / "store") as found:
        found.create_bucket("bucket")
        yield found


@pytest.fixture
def url(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> str:
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    return new_url()


@pytest.fixture
def open_home(tmp_path: Path, url: str) -> Callable[..., Home]:
    def opened(name: str = "a", *, with_store: bool = True) -> Home:
        environ = {"HYBRID_WAREHOUSE": url} if with_store else {}
        return Home(load_settings(home=tmp_path / name, environ=environ), Silent())

    return opened


def documents(name: str) -> TableDocuments:
    schema = {**json.loads((DATA / "orders_schema.json").read_text()), "schemaName": name}
    config = json.loads((DATA / "orders_offline_table.json").read_text())
    config = {**config, "tableName": name, "segmentsConfig": {**config["segmentsConfig"], "schemaName": name}}
    return TableDocuments((schema, "schema"), ((config, "config"),))


def create(home: Home, name: str = "orders", segments: tuple[str, ...] = ("a", "b")) -> Path:
    """A table with a row in each of some segments; its OFFLINE half."""
    create_table(home, documents(name))
    for segment in segments:
        add(home, name, segment)
    return home.layout(name).half(Half.OFFLINE)


def add(home: Home, name: str, segment: str) -> None:
    spec, half = home.spec(name), home.layout(name).half(Half.OFFLINE)
    hidden = (segment, "kafka", "topic", 0, 0, 1, 1001, "row", 1)
    fields = tuple(
        {"order_status": "OPEN", "ts": 1632681000000, "amount": 1.0}.get(f.name, 1) for f in spec.schema.fields
    )
    assert len(hidden) + len(fields) == len(physical_columns(spec, Half.OFFLINE))
    file = write_row(half, spec, (*hidden, *fields))
    state = open_half(half).offline
    act = next_act(state, new_act_id("replace"), "replace", "2026-01-01T00:00:00Z", {})
    with home.bench.lock(home.layout(name), Half.OFFLINE, with_spark=False):
        LogTransaction(half).commit(replace(state, act=act), [file])


def write_row(half: Path, spec: TableSpec, row: tuple[object, ...]) -> dict[str, object]:
    file = RowsFile(half / path_in_half(str(row[0]), ""), "x", statistics_columns(spec, Half.OFFLINE))
    file.write(record_batch(arrow_schema(spec, Half.OFFLINE), [row]).drop_columns([SEGMENT]))
    return file.close().entry(str(row[0]))


def segments(home: Home, name: str = "orders") -> list[str]:
    half = open_half(home.layout(name).half(Half.OFFLINE))
    assert half.table.to_pyarrow_table().num_rows == len(half.files), "each file can be read"
    return sorted(file.segment for file in half.files)


def keys(home: Home) -> list[str]:
    return [item.key for item in mirror_of(home).client.list_below()]


def mirror_of(home: Home) -> Mirror:
    mirror = mirror_at(home.settings.warehouse)
    assert mirror is not None
    return mirror


def on_store(home: Home) -> list[str]:
    """The keys of plans on the store, below the table's folder of them; lists by their ending alone."""
    names = [key.partition(".plans/")[2] for key in keys(home) if ".plans/" in key]
    return sorted("LIST" if name.endswith(".list") else name for name in names)


def taken_over(open_home: Callable[..., Home], name: str = "b") -> Home:
    other = open_home(name)
    pull_warehouse(other, take_over=True)
    return other


def states(home: Home) -> set[str]:
    return {half.state for half in warehouse_status(home).halves}


def dying(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, at: int = 0) -> None:
    """Let the call number `at` of a function die before it does anything."""
    real, calls = getattr(module, name), list[None]()

    def call(*args: Any, **options: Any) -> Any:
        calls.append(None)
        if len(calls) > at:
            raise Killed
        return real(*args, **options)

    monkeypatch.setattr(module, name, call)


@contextmanager
def frozen_at(patch: pytest.MonkeyPatch, owner: Any, name: str, meanwhile: Callable[[], object]) -> Iterator[None]:
    """`meanwhile` happens before the next call of a function: for its caller no time passes."""
    real = getattr(owner, name)

    def call(*args: Any, **options: Any) -> Any:
        patch.setattr(owner, name, real)
        meanwhile()
        return real(*args, **options)

    patch.setattr(owner, name, call)
    yield
    assert getattr(owner, name) is real, f"{name} was not called"


def soon(follower: WarehouseFollower) -> int:
    """A look that lists the tables."""
    follower._listed_at = -100.0
    return follower.look()


def findings(home: Home, *, repair: bool = False) -> list[tuple[str, str | None]]:
    """Severity and hint of what the doctor finds in the warehouse."""
    found = examine(Hybrid.of(home), repair=repair)
    return [
        (finding.severity.value, finding.repair or finding.hint) for finding in found if finding.check == "warehouse"
    ]
