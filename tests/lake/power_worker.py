"""Runs commands on a home while syncs are recorded. After each it cuts the power and prints what a copy then holds."""

from __future__ import annotations

import json
import os
import sys
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from hybrid.catalog.definitions import Definitions
from hybrid.cli.main import run
from hybrid.lake.log import open_half
from hybrid.spec.table_config import Half
from hybrid.table.state import OfflineState, RealtimeState, to_user_metadata
from tests.lake.power_failure import cut_power


def holds(home: Path) -> dict[str, Any]:
    """Definition, states and rows of the halves of `orders`, from the files alone."""
    found: dict[str, Any] = {"definition": Definitions(home / "warehouse").find("orders")}
    for half in Half:
        snapshot = open_half(home / "warehouse" / "orders" / half.value)
        state: RealtimeState | OfflineState = snapshot.state
        rows = [row for file in snapshot.files for row in pq.ParquetFile(file.path).read().to_pylist()]
        found[half.value] = [snapshot.version, to_user_metadata(state), sorted(map(repr, rows))]
    return found


def main() -> None:
    home, commands = Path(sys.argv[1]), json.loads(sys.argv[2])
    record = Path(os.environ["SYNC_RECORD"])
    for number, words in enumerate(commands):
        with redirect_stdout(StringIO()):
            code = run(["--home", str(home), *words, "--json"])
        assert code == 0, words
        if words[0] == "kafka":
            continue
        after = home.with_name(f"after-{number}")
        cut_power(record, home, after)
        there, stored = holds(home), holds(after)
        rows = {half.value: len(there[half.value][2]) for half in Half}
        found = {"command": " ".join(words[:2]), "same": there == stored, "rows": rows}
        sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
