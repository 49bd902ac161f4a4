"""QuestDB with its own HTTP server, loaded from the same events.

`ts` is the designated timestamp: rows lie in its order, and ranges of it are found without a scan.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from benchmarks.serving.http import Client, Endpoint, Rows
from benchmarks.serving.loaded import HOST, Loaded, cache_folder, fetch_once

POM = Path(__file__).resolve().parent.parent / "questdb" / "pom.xml"
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_TIME = re.compile(r"\bts (>=|<) \{(\w+)\}")
_KEY = re.compile(r"\b(order_id|customer_id) = \{p\}")
_CONFIG = """
http.bind.to={host}:{port}
http.min.enabled=false
pg.enabled=false
line.tcp.enabled=false
telemetry.enabled=false
cairo.sql.copy.root={files}
query.timeout=600s
"""
# Columns that are whole numbers to the client, and texts (symbols) to QuestDB.
_NUMBERS = ("order_id", "customer_id")
# Without a write-ahead log rows are visible when the statement has ended.
_TABLE = """
create table {name} (
  order_id symbol capacity 1048576 index capacity 4, customer_id symbol capacity 65536 index capacity 64,
  order_status symbol capacity 16 index, amount double, ts timestamp
) timestamp(ts) partition by day bypass wal
"""
_ROWS = """
insert into {name} select order_id::string::symbol, customer_id::string::symbol, order_status::symbol, amount,
  cast(ts * 1000 as timestamp) from read_parquet('{name}.parquet')
"""


def library() -> Path:
    """Where its jars are kept between runs."""
    return cache_folder() / "questdb"


class QuestDbEndpoint(Endpoint):
    """QuestDB's `/exec`. Its times are microseconds in statements and ISO 8601 in answers."""

    def dialect(self, text: str) -> str:
        text = _KEY.sub(r"\1 = '{p}'", _TIME.sub(r"ts \1 {\2}000", text))
        text = text.replace("distinctcount(", "count_distinct(")
        return text.replace("sum(amount) from", "sum(amount) total from").replace("by sum(amount)", "by total")

    def request(self, sql: str) -> tuple[str, str, bytes | None]:
        return "GET", f"/exec?query={quote(sql)}", None

    def rows(self, answer: bytes) -> Rows | None:
        found = json.loads(answer)
        if "dataset" not in found:
            return None
        convert = [_converter(column["name"], column["type"]) for column in found["columns"]]
        return [[to(value) for to, value in zip(convert, row, strict=True)] for row in found["dataset"]]


def _converter(name: str, kind: str) -> Callable[[Any], Any]:
    if kind == "TIMESTAMP":
        return _to_ms
    return int if name in _NUMBERS else _same


def _to_ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _same(value: Any) -> Any:
    return value


class QuestDb(Loaded):
    """One QuestDB process; rows are in files that it maps into memory."""

    name = "questdb"

    @staticmethod
    def missing() -> str | None:
        tools = ["java", *([] if library().exists() else ["mvn"])]
        found = [tool for tool in tools if shutil.which(tool) is None]
        return f"{' and '.join(found)} not found" if found else None

    @property
    def version(self) -> str:
        (jar,) = library().glob("questdb-*.jar")
        return f"QuestDB {jar.stem.removeprefix('questdb-')}"

    @property
    def endpoint(self) -> QuestDbEndpoint:
        return QuestDbEndpoint(HOST, self.port)

    def prepare(self) -> None:
        fetch_once(library(), _fetch)
        config = self.folder / "root" / "conf" / "server.conf"
        config.parent.mkdir(parents=True)
        config.write_text(_CONFIG.format(host=HOST, port=self.port, files=self.files), encoding="utf-8")

    def command(self) -> list[str]:
        root = str(self.folder / "root")
        return ["java", "-Xmx4g", "-p", str(library()), "-m", "io.questdb/io.questdb.ServerMain", "-d", root]

    def load(self, client: Client) -> None:
        for name in self.tables:
            for statement, outcome in ((_TABLE, b'"ddl":"OK"'), (_ROWS, b'"dml":"OK"')):
                answer = client.ask(statement.format(name=name))[1]
                assert outcome in answer, answer


def _fetch(part: Path) -> list[str]:
    return ["mvn", "-B", "-q", "-f", str(POM), _COPY, f"-DoutputDirectory={part}", "-DincludeScope=runtime"]
