"""How long commands take from a cold process, against an earlier checkout: medians of pairs in turn, and their ratios.

Processor time changes less than the clock where others work on the machine.

    git worktree add --detach ../before COMMIT
    .venv/bin/python -m benchmarks.start --against ../before

Without `--against` it measures this checkout twice: how far two medians of the same lie apart.
Each checkout has a broker and homes of its own, which it made itself: an empty one, and one with the tables of the
orders recipes (append and upsert) after a move. Servers run in the homes with tables, for the commands that ask one.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.export import SERVER
from tests.watchdog import running_broker, watch

ROOT = Path(__file__).resolve().parent.parent
ROUNDS = 20
# A run of one checkout: its homes below the first argument, at the broker of the second.
LAY = """
import sys
from pathlib import Path
import hybrid
from hybrid.api.hybrid import TableDocuments
from hybrid.kafka.topics import create_topic, produce
data, folder, brokers = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
(folder / "empty").mkdir(parents=True)
for name in ("orders", "orders_upsert"):
    create_topic(brokers, name)
    with (data / name / "events.jsonl").open("rb") as events:
        produce(brokers, name, [line.strip() for line in events])
    hy = hybrid.connect(folder / name)
    stream = folder / f"{name}.json"
    text = (data / name / "orders_table.json").read_text()
    stream.write_text(text.replace('topic.name": "orders"', f'topic.name": "{name}"'))
    configs = [stream, data / name / "orders_offline_table.json"]
    hy.create_table(TableDocuments.read(data / name / "orders_schema.json", configs, brokers))
    hy.table("orders").ingest()
    hy.table("orders").move()
    hy.close()
"""
COMPLETION = {"_HYBRID_COMPLETE": "bash_complete", "COMP_WORDS": "hybrid que", "COMP_CWORD": "1"}
SQL = "select count(*), sum(amount) from orders"


@dataclass(frozen=True)
class Case:
    """A command line; `{home}` and `{server}` are the checkout's. `code` is how it ends."""

    name: str
    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    code: int = 0


CASES = (
    Case("`--help`", ("--help",)),
    Case("completion of a command", (), COMPLETION),
    Case("`status`, empty home", ("--home", "{home}/empty", "status")),
    Case("`status`, append table", ("--home", "{home}/orders", "status")),
    Case("`status`, upsert table", ("--home", "{home}/orders_upsert", "status")),
    Case("`status`, by a server", ("--home", "{home}/empty", "--server", "{server}", "status")),
    Case("`query`, home with data", ("--home", "{home}/orders", "query", SQL)),
    Case("`query`, no home", ("--home", "{home}/none", "query", SQL), code=1),
    Case("`task list`", ("--home", "{home}/orders", "task", "list")),
    Case("`table list`", ("--home", "{home}/orders", "table", "list")),
)


@dataclass(frozen=True)
class Checkout:
    """A checkout with its homes and its server."""

    root: Path
    homes: Path
    server: str

    def cost(self, case: Case) -> tuple[float, float]:
        """The time that a command takes and the processor's time, seconds."""
        words = [word.format(home=self.homes, server=self.server) for word in case.words]
        command = [sys.executable, "-m", "hybrid.cli", *words]
        before, started = processor_seconds(), time.perf_counter()
        env = {**environment(self.root), **case.environment}
        done = subprocess.run(command, env=env, cwd=self.homes, capture_output=True)
        seconds = time.perf_counter() - started
        assert done.returncode == case.code, (case.name, done.returncode, done.stderr)
        return seconds, processor_seconds() - before


def processor_seconds() -> float:
    """The processor's time that ended children of this process have taken."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def environment(root: Path) -> dict[str, str]:
    """The environment of a process that runs a checkout. Python looks into its folder first: run it elsewhere."""
    return {**os.environ, "PYTHONPATH": str(root), "HYBRID_HOME": ""}


@contextmanager
def checkout(root: Path, folder: Path) -> Iterator[Checkout]:
    """A checkout whose homes are laid, with a broker and a server that run."""
    folder.mkdir()
    with ExitStack() as stack:
        brokers = stack.enter_context(running_broker(folder / "broker"))
        laid = [sys.executable, "-c", LAY, str(ROOT / "data"), str(folder / "homes"), brokers]
        subprocess.run(laid, check=True, env=environment(root), cwd=folder, capture_output=True)
        serving = [sys.executable, "-c", SERVER, str(folder / "homes" / "orders")]
        process = subprocess.Popen(serving, env=environment(root), cwd=folder, stdout=subprocess.PIPE, text=True)
        watch(process)
        stack.callback(process.wait)
        stack.callback(process.terminate)
        assert process.stdout is not None
        yield Checkout(root, folder / "homes", process.stdout.readline().strip())


def measure(mine: Checkout, theirs: Checkout, rounds: int) -> None:
    """Print a row for each case. The first pair, which compiles modules, does not count."""
    print("| command | before, ms | now, ms | ratio | ratio of processor time |\n|---|---|---|---|---|")
    for case in CASES:
        pairs = [(theirs.cost(case), mine.cost(case)) for _ in range(rounds + 1)][1:]
        before, now = (list(map(statistics.median, zip(*costs, strict=True))) for costs in zip(*pairs, strict=True))
        ratios = " | ".join(f"{new / old:.2f}" for old, new in zip(before, now, strict=True))
        print(f"| {case.name} | {before[0] * 1000:.0f} | {now[0] * 1000:.0f} | {ratios} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--against", type=Path, default=ROOT, metavar="PATH", help="the earlier checkout")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        mine = stack.enter_context(checkout(ROOT, Path(name) / "mine"))
        theirs = stack.enter_context(checkout(options.against.resolve(), Path(name) / "theirs"))
        print(f"{platform.machine()}, {os.cpu_count()} processors, Python {platform.python_version()}", flush=True)
        measure(mine, theirs, options.rounds)


if __name__ == "__main__":
    main()
