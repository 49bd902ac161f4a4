"""What a home takes on disk beside its tables: logs, the local broker's files, dropped copies."""

from __future__ import annotations

from pathlib import Path

import pytest

import hybrid
from hybrid.cli.main import run
from hybrid.operations.disk_usage import disk_usage
from hybrid.runtime.disk import folder_bytes


def write(path: Path, count: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * count)


def test_each_place_is_counted(home: Path) -> None:
    places = {
        "logs": home / "logs" / "serve.jsonl",
        "kafka": home / "kafka" / "data" / "orders-0" / "0.log",
        "dropped_copies": home / "warehouse" / ".dropped" / "orders@20210924T000000.000000Z" / "OFFLINE" / "0.parquet",
    }
    with hybrid.connect(home) as hy:
        before = disk_usage(hy.context)
        for number, path in enumerate(places.values(), 1):
            write(path, number * 100_000)
        write(home / "warehouse" / "orders" / "0.parquet", 1_000_000)  # a table's: `bytes` of its status
        after = disk_usage(hy.context)
    for number, name in enumerate(places, 1):
        added = getattr(after, name) - getattr(before, name)
        assert number * 100_000 <= added < number * 100_000 + 65_536, name
    assert after.free > 0


def test_a_sparse_file_takes_what_it_has_on_disk(tmp_path: Path) -> None:
    """Kafka makes its indexes of 10 MiB at once. Links are not followed, and a missing folder takes nothing."""
    with (tmp_path / "0.index").open("wb") as file:
        file.truncate(10 * 1024**2)
    (tmp_path / "loop").symlink_to(tmp_path)
    assert folder_bytes(tmp_path) < 1024**2 and folder_bytes(tmp_path / "nosuch") == 0


def test_status_says_it(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home.mkdir(exist_ok=True)
    write(home / "logs" / "serve.jsonl", 2_000_000)
    run(["--home", str(home), "status"])
    (line,) = [line for line in capsys.readouterr().err.splitlines() if line.startswith("disk: ")]
    assert line.startswith("disk: 2.0 MB of logs, ") and "of dropped tables" in line and line.endswith("are free")
