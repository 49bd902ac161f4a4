"""A process that writes a warehouse and can be frozen (`tests.shared_jvm.start_serving`).

A request has a `verb`, a `table`, and the `failpoint` at which the process stops until SIGCONT. The answer is the
`error` with its `hint`, and whether another home had taken over (`refused`).
"""

import json
import os
from multiprocessing.connection import Connection
from pathlib import Path

import hybrid
from hybrid.api.hybrid import Hybrid, TableDocuments
from hybrid.config.settings import load_settings
from hybrid.errors import ConflictError, HybridError
from hybrid.home.home import Home
from hybrid.operations.backfill_change import BackfillChange
from hybrid.operations.erasure import Erasure
from hybrid.operations.warehouse.pull import take_over_warehouse
from hybrid.progress import Silent
from hybrid.replace.backfill.options import BackfillOptions
from tests.soak import worker

# States of a backfill that nothing more comes of.
ENDED = ("DONE", "CANCELLED", "REVERTED")


def read_documents(files: Path, table: str, notes: int = 0) -> TableDocuments:
    """The documents of a table, with so many more columns."""
    schema = json.loads((files / f"{table}_schema.json").read_text())
    schema["dimensionFieldSpecs"] += [{"name": f"note_{number}", "dataType": "STRING"} for number in range(notes)]
    configs = [path for half in ("realtime", "offline") if (path := files / f"{table}_{half}.json").exists()]
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
            case "replay":
                hy.table(table).replay_rejected()
            case "reset":
                hy.table(table).connectors.reset("latest", accept=True)
            case "retention":
                hy.table(table).upkeep.drop_expired()
            case "merge":
                cancel_backfills(hy, table)  # what one is to correct is not merged
                hy.table(table).upkeep.merge_segments()
            case "backfill":
                correct(hy, table, BackfillChange(update="rev = rev + 1"))
            case "claim":
                bring_rejected(hy, table)
            case "release":
                give_back(hy, table)
            case "flow" | "refresh":
                run_flows(hy, files / f"{table}.py", is_refresh=verb == "refresh")
            case "purge":
                lowest = hy.query(f"select min(rev) from {table}").rows[0][0]  # what corrections have replaced
                hy.table(table).purge(Erasure(f"rev < {int(lowest)}"))
            case _:
                worker.VERBS[verb](hy, table)


def correct(hy: Hybrid, table: str, change: BackfillChange) -> None:
    """Plans a backfill and runs it, in the place of those that were not ended."""
    cancel_backfills(hy, table)
    hy.backfills.run(hy.backfills.plan(table, change).id, BackfillOptions())


def bring_rejected(hy: Hybrid, table: str) -> None:
    """Runs the backfill of rejected rows that was not ended, or plans one."""
    begun = [found.id for found in hy.backfills.statuses(table) if found.state not in ENDED]
    plan_id = begun[0] if begun else hy.backfills.plan(table, BackfillChange(from_rejected=True)).id
    hy.backfills.run(plan_id, BackfillOptions())


def give_back(hy: Hybrid, table: str) -> None:
    """Reverts the newest backfill, which makes its rejected rows rejected again; or only the latter, if it was done."""
    newest = hy.backfills.statuses(table)[0]
    if newest.state == "DONE":
        hy.backfills.revert(newest.id)
    else:
        hy.backfills.release(newest.id)


def cancel_backfills(hy: Hybrid, table: str) -> None:
    for found in hy.backfills.statuses(table):
        if found.state not in ENDED:
            hy.backfills.cancel(found.id)


def run_flows(hy: Hybrid, file: Path, *, is_refresh: bool) -> None:
    """Runs a flow file. ConflictError, with its words, when a flow failed."""
    session = hy.load_flows(file, {})
    for report in hy.run_flows(session, session.declaration.chosen(None) if is_refresh else ()):
        if report.state == "FAILED":
            raise ConflictError(report.sentence, hint=report.hint)


def answer(error: HybridError | None) -> dict[str, object]:
    if error is None:
        return {"error": None, "hint": None, "refused": False}
    words = f"{type(error).__name__}: {error}"
    return {"error": words, "hint": error.hint, "refused": "written by another home" in words}


def serve(requests: Connection, home: str, files: str) -> None:
    os.environ["HYBRID_FAILPOINT_SIGNAL"] = "STOP"
    while True:
        try:
            request = requests.recv()
        except EOFError:
            return
        os.environ["HYBRID_FAILPOINT"] = request["failpoint"]
        error: HybridError | None = None
        try:
            do(Path(home), request["verb"], request["table"], Path(files))
        except HybridError as raised:
            error = raised
        requests.send(answer(error))
