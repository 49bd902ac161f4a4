"""A process that writes a warehouse and can be frozen: `python frozen_worker.py HOME FILES`, with requests on stdin.

A request is a line of JSON: `verb`, `table`, and the `failpoint` at which the process stops until SIGCONT. The answer
is a line of JSON on stdout: the `error`, and whether another home had taken over (`refused`).
"""

import json
import os
import sys
from pathlib import Path

import hybrid
from hybrid.api.hybrid import TableDocuments
from hybrid.config.settings import load_settings
from hybrid.errors import HybridError
from hybrid.home.home import Home
from hybrid.operations.warehouse.pull import take_over_warehouse
from hybrid.progress import Silent
from tests.soak import worker


def read_documents(files: Path, table: str, notes: int = 0) -> TableDocuments:
    """The documents of a table, with so many more columns."""
    schema = json.loads((files / f"{table}_schema.json").read_text())
    schema["dimensionFieldSpecs"] += [{"name": f"note_{number}", "dataType": "STRING"} for number in range(notes)]
    configs = [files / f"{table}_{half}.json" for half in ("realtime", "offline")]
    return TableDocuments((schema, "schema"), tuple((json.loads(path.read_text()), path.name) for path in configs))


def do(home: Path, verb: str, table: str, files: Path) -> None:
    if verb == "take-over":
        take_over_warehouse(Home(load_settings(home=home), Silent()))
        return
    with hybrid.connect(home) as hy:
        match verb:
            case "create":
                hy.create_table(read_documents(files, table))
            case "evolve":
                notes = sum(name.startswith("note_") for name in hy.spec(table).schema.column_names)
                hy.apply_table(read_documents(files, table, notes + 1))
            case "seal":
                hy.table(table).seal()
            case _:
                worker.VERBS[verb](hy, table)


def main() -> None:
    home, files = map(Path, sys.argv[1:])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what verbs print goes to the log
    os.environ["HYBRID_FAILPOINT_SIGNAL"] = "STOP"
    for line in sys.stdin:
        request = json.loads(line)
        os.environ["HYBRID_FAILPOINT"] = request.get("failpoint", "")
        try:
            do(home, request["verb"], request["table"], files)
            error = None
        except HybridError as raised:
            error = f"{type(raised).__name__}: {raised}"
        answers.write(json.dumps({"error": error, "refused": "written by another home" in (error or "")}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
