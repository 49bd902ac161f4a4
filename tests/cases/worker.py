"""A process that acts on a table, to be killed: `worker.py TABLE.json VERB@NOW...`

Verbs: create (unless it is recorded), ingest (`ingest/3@NOW`: 3 offsets a batch), move (all closed buckets), boundary
(`boundary/5@NOW`: sets it to 5 ms; clears it without a number), reset (to the earliest offsets), replay (with values
that do not fit as nulls).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from hybrid.jvm.jars import spark_jars
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.spark import SparkSettings
from hybrid.progress import Silent
from tests.cases.tables import LiveTable, layout_in, table_spec
from tests.shared_jvm import session_of_dying


def perform(table: LiveTable, verb: str, most: int) -> str:
    if verb == "create":
        record = table.layout.root / "recorded"  # stands for the catalog
        if not record.exists():
            table.create()
            record.touch()
        return "created"
    if verb == "ingest":
        return table.ingest(**({"batch_offsets_max": most} if most else {})).sentence
    if verb == "boundary":
        return (table.set_boundary(most) if most else table.clear_boundary()).sentence
    if verb == "reset":
        return table.reset("earliest").sentence
    if verb == "replay":
        return table.lenient().replay().sentence
    return table.move(None).sentence


def main() -> None:
    document, acts = json.loads(Path(sys.argv[1]).read_text()), sys.argv[2:]
    folder = Path(document["folder"])
    settings = SparkSettings(spark_jars(), folder / "logs", driver_memory="600m")
    bench = CommitContext(session_of_dying(settings), lambda: 0, Silent())
    table = LiveTable(
        table_spec(document["brokers"], document["topic"], **document["options"]), layout_in(folder), bench
    )
    for act in acts:
        verb, _, now = act.partition("@")
        verb, _, most = verb.partition("/")
        table.now = int(now)
        sys.stdout.write(perform(table, verb, int(most or 0)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
