"""Time and memory of results as files: one table, every format, from a home and through a server.

    .venv/bin/python -m benchmarks.export --rows 10000000

Writes the table's files directly (no Spark, no Kafka). Each export is a process of its own; its peak of memory is what
the kernel counted. The server's peak is that of its process, over all exports until then.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa

from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.config.settings import load_settings
from hybrid.operations.tables.create import _definition
from hybrid.progress import Silent
from tests.query.halves import Halves, Row

FORMATS = ("csv", "json", "jsonl", "markdown", "parquet", "arrow")
SQL = "select * from events"
COMMIT_ROWS = 1_000_000
SCHEMA: dict[str, object] = {
    "schemaName": "events",
    "dimensionFieldSpecs": [
        {"name": "id", "dataType": "LONG"},
        {"name": "word", "dataType": "STRING"},
        {"name": "flag", "dataType": "BOOLEAN"},
        {"name": "at", "dataType": "TIMESTAMP"},
    ],
    "metricFieldSpecs": [{"name": "small", "dataType": "FLOAT"}, {"name": "price", "dataType": "BIG_DECIMAL"}],
    "dateTimeFieldSpecs": [
        {"name": "ts", "dataType": "LONG", "format": "1:MILLISECONDS:EPOCH", "granularity": "1:MILLISECONDS"}
    ],
}
OFFLINE: dict[str, object] = {
    "tableName": "events",
    "tableType": "OFFLINE",
    "segmentsConfig": {"timeColumnName": "ts", "schemaName": "events"},
}
# Command lines one after the other in a process of their own, which prints a line behind each: the peak of its memory
# until then (KiB), and the time of the command (s).
# VmHWM: a ru_maxrss would begin with the memory of the process that started this one.
CHILD = r"""
import json, re, sys, time
from hybrid.cli.main import run
for words in json.loads(sys.argv[1]):
    started = time.monotonic()
    code = run(words)
    seconds = time.monotonic() - started
    peak_kib = re.findall(r"VmHWM:\s+(\d+) kB", open("/proc/self/status").read())[0]
    print("measured", code, peak_kib, seconds)
"""


def lay_events(home: Path, rows: int) -> None:
    """The table events with so many rows in its OFFLINE half."""
    home.mkdir(parents=True, exist_ok=True)
    hy = Hybrid(load_settings(home=home), Silent())
    spec = hy.validate(TableDocuments((SCHEMA, "schema"), [(OFFLINE, "offline")]))
    halves = Halves.create(hy.settings.warehouse, spec)
    for first in range(0, rows, COMMIT_ROWS):
        numbers = np.arange(first, min(rows, first + COMMIT_ROWS))
        halves.commit_columns(Row({}, 0, None, None, segment=f"events_{first}"), columns_of(numbers))
    hy.context.definitions.add(_definition(spec))
    hy.close()


def columns_of(numbers: np.ndarray) -> dict[str, pa.Array]:
    ids = pa.array(numbers, pa.int64())
    return {
        "id": ids,
        "word": pa.array([f"word {number % 9973}, and some more" for number in numbers.tolist()]),
        "flag": pa.array(numbers % 3 == 0),
        "at": pa.array(numbers * 1_234_567 + 1_600_000_000_000_000, pa.timestamp("us", "UTC")),
        "small": pa.array((numbers % 100_003 * 0.01).astype(np.float32)),
        "price": pa.array(numbers % 100_000).cast(pa.decimal128(38, 18)),
        "ts": ids,
        "_hy_time": ids,
    }


def exported(*commands: list[str]) -> list[tuple[float, float]]:
    """Seconds of each of these exports, which follow each other in one process, and MiB at its peak until then."""
    child = [sys.executable, "-c", CHILD, json.dumps(commands)]
    found = subprocess.run(child, check=True, capture_output=True, text=True)
    lines = [line.split()[1:] for line in found.stdout.splitlines() if line.startswith("measured ")]
    assert [code for code, _, _ in lines] == ["0"] * len(commands), found.stderr
    return [(float(seconds), float(peak_kib) / 1024) for _, peak_kib, seconds in lines]


def measure(folder: Path, at: list[str], rows: int, name: str, formats: list[str], server: int | None = None) -> None:
    for fmt in formats:
        path = folder / f"result.{fmt}"
        ((seconds, mib),) = exported([*at, "query", SQL, "-o", str(path), "--format", fmt, "--force"])
        size, count = path.stat().st_size / 2**20, rows / seconds / 1e6
        path.unlink()
        of_server = "" if server is None else f", server {peak_mib(server):.0f} MiB"
        speed = f"{seconds:7.1f} s {count:6.2f} M rows/s"
        print(f"{name:6} {fmt:8} {speed} {size:8.0f} MiB file, {mib:6.0f} MiB memory{of_server}", flush=True)


def peak_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM:"))


SERVER = """
import asyncio, socket, sys
from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.progress import Silent
from hybrid.serve.app import build_app
from hybrid.serve.context import ServerLimits
from hybrid.serve.httpserver import http_server
from pathlib import Path
listener = socket.create_server(("127.0.0.1", 0))
url = f"http://127.0.0.1:{listener.getsockname()[1]}"
print(url, flush=True)
http_server(build_app(Hybrid(load_settings(home=Path(sys.argv[1])), Silent()), ServerLimits(), url)).run([listener])
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    options = parser.parse_args()
    rows = options.rows
    print(f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}, {rows:,} rows")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lay_events(folder / "home", rows)
        measure(folder, ["--home", str(folder / "home")], rows, "home", options.formats)
        ordered = ["--home", str(folder / "home"), "query", f"{SQL} order by word, id", "-o", str(folder / "o.parquet")]
        ((seconds, mib),) = exported(ordered)
        print(f"home   ORDER BY as parquet: {seconds:.1f} s, {mib:.0f} MiB memory", flush=True)
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(folder / "home")], stdout=subprocess.PIPE, text=True
        )
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            (folder / "elsewhere").mkdir()
            at = ["--server", url, "--home", str(folder / "elsewhere")]
            measure(folder, at, rows, "server", options.formats, process.pid)
        finally:
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main()
