"""A home with the orders table on disk, written without Spark and without Kafka, and its check-up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.config.settings import load_settings
from hybrid.config.table_config import Half, StreamConfig
from hybrid.doctor.examine import examine
from hybrid.doctor.findings import Finding
from hybrid.kafka.streams import StreamView
from hybrid.lake.layout import TableLayout
from hybrid.lake.log import open_half
from hybrid.progress import Silent
from hybrid.table.boundary import Boundary, PartitionKey
from hybrid.table.state import Consuming
from tests.fake_streams import seen
from tests.query.halves import Halves, Row

DATA = Path(__file__).resolve().parents[2] / "data" / "orders"
KEY = PartitionKey("kafka", "orders", 0, 0)
SEGMENT = "orders__0__0__20210924T0602Z"


@dataclass
class Kafka:
    """What Kafka shows of the topic; `error` is raised instead."""

    view: StreamView
    error: Exception | None = None
    asked: int = 0

    def __call__(self, stream: StreamConfig, timeout_ms: int = 0, asked: object = None) -> StreamView:
        self.asked += 1
        if self.error is not None:
            raise self.error
        return self.view


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    """A topic `orders` with offsets 0 to 10."""
    shown = Kafka(seen("orders", "id-1", {0: 0}, {0: 10}))
    for module in ("hybrid.operations.tables.create", "hybrid.kafka.streams"):
        monkeypatch.setattr(f"{module}.view_stream", shown)
    return shown


class Patient:
    """A home, its table, and the check-up."""

    def __init__(self, home: Path) -> None:
        self.path = home
        self.progress = Silent()

    def documents(self, *configs: str, name: str = "orders") -> TableDocuments:
        return TableDocuments.read(
            DATA / "orders_schema.json",
            [DATA / one for one in configs or ("orders_table.json", "orders_offline_table.json")],
            overrides=[f"/tableName={name}"] if name != "orders" else [],
        )

    def create(self, *configs: str, name: str = "orders") -> None:
        self.hybrid().create_table(self.documents(*configs, name=name))

    def hybrid(self) -> Hybrid:
        return Hybrid(load_settings(home=self.path), self.progress)

    @property
    def layout(self) -> TableLayout:
        return TableLayout(self.path / "warehouse" / "orders")

    @property
    def definition(self) -> Path:
        return self.layout.root / "definition.json"

    def log(self, half: Half, version: int) -> Path:
        return self.layout.half(half) / "_delta_log" / f"{version:020d}.json"

    def files(self, half: Half) -> list[Path]:
        return [Path(file.path) for file in open_half(self.layout.half(half)).files]

    def halves(self) -> Halves:
        """The table's halves as the builder of the query tests knows them."""
        return Halves(
            self.hybrid().spec("orders"),
            self.layout,
            open_half(self.layout.half(Half.REALTIME)).realtime,
            open_half(self.layout.half(Half.OFFLINE)).offline,
        )

    def fill(self) -> Halves:
        """Two rows in REALTIME up to offset 2, one of them in OFFLINE."""
        halves, rows = self.halves(), [row(0, 1000), row(1, 2000)]
        consuming = {KEY: Consuming(SEGMENT, 0, 0, 2, 100, 1)}
        halves.commit_realtime(rows, offsets={KEY: 2}, consuming=consuming, sequences={KEY: 1})
        halves.commit_offline([row(0, 1000, segment="orders_1000_1000_0")], Boundary(1500, {KEY: 2}))
        return halves

    def examine(self, *, repair: bool = False, table: str | None = None) -> list[Finding]:
        home = self.hybrid()
        try:
            return examine(home, table, repair=repair)
        finally:
            home.close()

    def only(self, *, repair: bool = False, table: str | None = None) -> Finding:
        """The one thing that is found."""
        found = self.examine(repair=repair, table=table)
        assert len(found) == 1, found
        return found[0]


def row(offset: int, time_ms: int, segment: str = SEGMENT) -> Row:
    return Row({"order_id": offset, "ts": time_ms}, time_ms, offset, KEY, segment=segment)


@pytest.fixture
def patient(home: Path, kafka: Kafka, machine: None) -> Patient:
    """A home without a table."""
    home.mkdir(mode=0o700)
    return Patient(home)


@pytest.fixture
def orders(patient: Patient) -> Patient:
    """A home with the orders table: rows in both halves, and nothing wrong."""
    patient.create()
    patient.fill()
    return patient


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine of the tests lacks nothing, whatever is true."""
    monkeypatch.setattr("hybrid.doctor.machine.find_java", lambda *, starts_it: None)
    monkeypatch.setattr("hybrid.doctor.machine.missing_jars", list)
    monkeypatch.setattr("hybrid.doctor.machine.shutil.disk_usage", disk(total=100 * 1024**3, free=50 * 1024**3))


def disk(total: int, free: int) -> Callable[[object], object]:
    """Stands in for `shutil.disk_usage`."""

    class Usage:
        def __init__(self) -> None:
            self.total, self.free = total, free

    return lambda path: Usage()
