"""A process of the soak tests, which does verbs in turn on each table, until it dies.

`python -m tests.soak.worker HOME TABLES VERB...` starts it. Verbs: create FOLDER, ingest, move (all closed buckets),
correct (rewrites the first offline segment with rev + 1), revert, boundary (sets it by hand, or clears it).
`--loop SECONDS` repeats them.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

import hybrid
from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.errors import ConflictError, NotFoundError
from tests.shared_jvm import borrow_session, has_lent_jvm


def create(home: Hybrid, table: str, files: Path) -> None:
    try:
        home.create_table(
            TableDocuments.read(
                files / f"{table}_schema.json", [files / f"{table}_realtime.json", files / f"{table}_offline.json"]
            )
        )
    except ConflictError as there_already:
        print(there_already)


def ingest(home: Hybrid, table: str) -> None:
    print(home.table(table).ingest().sentence)


def move(home: Hybrid, table: str) -> None:
    print(home.table(table).move(max_buckets=None).sentence)


def correct(home: Hybrid, table: str) -> None:
    """Writes the first offline segment's own rows with rev + 1 and runs them as a replacement job under its name."""
    names = [segment.name for segment in home.table(table).segments() if segment.half == "OFFLINE"]
    if not names:
        return
    sql = f"select * from {table}_OFFLINE where $segmentName = '{names[0]}' limit 1000000"
    result = home.query(sql)
    rows = [dict(zip(result.column_names, row, strict=True)) for row in result.rows]
    with tempfile.TemporaryDirectory() as folder:
        lines = [json.dumps({**row, "rev": row["rev"] + 1}) for row in rows]
        Path(folder, "rows.json").write_text("\n".join(lines))
        spec = Path(folder, "job.yml")
        spec.write_text(JOB.format(folder=folder, table=table, segment=names[0]))
        print(home.run_job(spec, {}).sentence)


def revert(home: Hybrid, table: str) -> None:
    """Takes back the newest replacement that stands."""
    active = [
        entry for entry in home.table(table).replacements() if entry.kind == "replace" and entry.state == "ACTIVE"
    ]
    if active:
        print(home.table(table).revert(active[0].id).sentence)


def boundary(home: Hybrid, table: str) -> None:
    """Sets the boundary below the last rows that moved; the next time clears it."""
    known = home.table(table).boundary()
    if known.override_ms is not None:
        print(home.table(table).clear_boundary().sentence)
    elif known.time_ms is not None:
        print(home.table(table).set_boundary(known.time_ms - 3_600_000, accepted=True).sentence)


JOB = """\
jobType: SegmentCreationAndTarPush
inputDirURI: '{folder}'
includeFileNamePattern: 'glob:**/rows.json'
recordReaderSpec: {{dataFormat: json}}
tableSpec: {{tableName: {table}}}
segmentNameGeneratorSpec: {{type: fixed, configs: {{segment.name: '{segment}'}}}}
"""

VERBS = {"ingest": ingest, "move": move, "correct": correct, "revert": revert, "boundary": boundary}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("home")
    parser.add_argument("tables")
    parser.add_argument("verbs", nargs="*")
    parser.add_argument("--create", type=Path)
    parser.add_argument("--loop", type=float, default=0.0)
    options = parser.parse_args()
    if has_lent_jvm():
        borrow_session()
    home = hybrid.connect(options.home)
    tables = options.tables.split(",")
    end = time.monotonic() + options.loop
    if options.create:
        for table in tables:
            create(home, table, options.create)
    while True:
        for table in tables:
            for verb in options.verbs:
                try:
                    VERBS[verb](home, table)
                except (ConflictError, NotFoundError) as waited_too_long:
                    print(type(waited_too_long).__name__, waited_too_long)
        sys.stdout.flush()
        if time.monotonic() >= end:
            return
        time.sleep(0.2)


if __name__ == "__main__":
    main()
