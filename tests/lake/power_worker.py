"""Runs commands on a home while syncs are recorded. After each it cuts the power and prints what a copy then holds."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import sys
from contextlib import closing, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from hybrid.catalog.definitions import Definitions
from hybrid.cli.main import run
from hybrid.config.table_config import Half
from hybrid.errors import HybridError
from hybrid.lake.log import open_half
from hybrid.table.state import OfflineState, RealtimeState, to_user_metadata
from tests.lake.power_failure import cut_power

# Nobody is told that these are there: locks, what a run has staged until it ends, logs, and checksums of Hadoop's own
# that it does without. What SQLite's files hold is read, not compared.
_VOLATILE = re.compile(
    r"\.lock$|/\.lock$|/staging/|/staging$|^logs|^spill|/\.[^/]*\.crc$|^catalog\.db|/running$|_SUCCESS$"
)


def holds(home: Path) -> dict[str, Any]:
    """Runs, and definition, states and rows of the halves of `orders`, from the files alone."""
    found: dict[str, Any] = {"definition": Definitions(home / "warehouse").find("orders"), "runs": runs(home)}
    for half in Half:
        snapshot = open_half(home / "warehouse" / "orders" / half.value)
        state: RealtimeState | OfflineState = snapshot.state
        rows = [row for file in snapshot.files for row in pq.ParquetFile(file.path).read().to_pylist()]
        found[half.value] = [snapshot.version, to_user_metadata(state), sorted(map(repr, rows))]
    return found


def runs(home: Path) -> list[tuple[str, ...]]:
    """What the catalog says of runs; none where there is no catalog yet."""
    if not (home / "catalog.db").exists():
        return []
    with closing(sqlite3.connect(f"file:{home / 'catalog.db'}?mode=rw", uri=True)) as catalog:
        return catalog.execute("SELECT id, type, state, result FROM runs ORDER BY id").fetchall()


def lost(home: Path, after: Path) -> list[str]:
    """Files that the power failure took or emptied, and files that it brought back."""
    here, there = (
        {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
        for root in (home, after)
    )
    differing = (name for name in here.keys() | there.keys() if here.get(name) != there.get(name))
    return sorted(name for name in differing if not _VOLATILE.search(name))


def compare(home: Path, after: Path) -> dict[str, object]:
    """Whether the copy answers as the home, how many rows that are, and the files that differ."""
    there = holds(home)
    rows = {half.value: len(there[half.value][2]) for half in Half}
    differing = lost(home, after)  # before the copy is opened, which mends it
    try:
        same = there == holds(after)
    except (HybridError, OSError, ValueError, sqlite3.Error):
        same = False
    return {"same": same, "rows": rows, "lost": differing}


def main() -> None:
    home, commands = Path(sys.argv[1]), json.loads(sys.argv[2])
    record, made = Path(os.environ["SYNC_RECORD"]), ""
    for number, words in enumerate(commands):
        answer = StringIO()
        with redirect_stdout(answer):
            code = run(["--home", str(home), *(word.replace("{made}", made) for word in words), "--json"])
        assert code == 0, (words, answer.getvalue())
        if words[0] == "kafka":
            continue
        told = json.loads(answer.getvalue() or "{}")
        made = str(told.get("id") or told.get("act") or made) if isinstance(told, dict) else made
        after = home.with_name(f"after-{number}")
        cut_power(record, home, after)
        found = {"command": " ".join(words[:2]), **compare(home, after)}
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
