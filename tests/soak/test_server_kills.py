"""A server works, and then its processes are killed at random; nothing is lost, shown wrongly or done twice.

`serve`, the query process, the pipeline process and its JVM die alone and together; within 30 s all is well again.
HYBRID_KILLS=30 kills often, in each way; HYBRID_CHURN_S=300 has it work for long.
"""

import os
import random
import signal
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from hybrid.kafka.topics import create_topic
from tests.serve.server import Server
from tests.soak import harness, server_churn
from tests.soak.events import PARTITIONS, make_events
from tests.soak.served import (
    MOVE,
    Client,
    Load,
    check_answers,
    check_end,
    check_runs,
    counted,
    create_tables,
    lineage_of,
    oracles_of,
    producing,
)

# Three kills of this seed are what no other test kills: serve with the pipeline, the JVM under load, serve with the
# query process. tests/serve/test_processes.py has the others, test_backlog_kills.py the pipeline and the query process.
KILLS = int(os.environ.get("HYBRID_KILLS", "3"))
SEED = int(os.environ.get("HYBRID_KILLS_SEED", "0"))
IS_SHORT = KILLS < 10 and server_churn.SECONDS < 60
HEALTHY_S_MAX = 30.0
END_S_MAX = 10.0
ROWS_PER_S = 60
READERS = 2
# Between two kills: short enough to hit what starts, and in the full run long enough to hit acts of a warm pipeline.
PAUSE_S = (0.5, 5.0 if IS_SHORT else 20.0)
# The full run lets the JVM compile as it does for users.
JVM_OPTIONS = harness.JVM_OPTIONS if IS_SHORT else {}
SUPERVISOR, QUERY, PIPELINE, JVM = "serve", "query", "pipeline", "java"
# What is killed, and whose successors must then be there.
VICTIMS = {
    (QUERY,): (QUERY,),
    (PIPELINE,): (PIPELINE, JVM),
    (QUERY, PIPELINE): (QUERY, PIPELINE, JVM),
    (JVM,): (PIPELINE, JVM),
    (SUPERVISOR,): (SUPERVISOR, QUERY, PIPELINE, JVM),
    (SUPERVISOR, QUERY): (SUPERVISOR, QUERY, PIPELINE, JVM),
    (SUPERVISOR, PIPELINE): (SUPERVISOR, QUERY, PIPELINE, JVM),
}

pytestmark = [
    pytest.mark.spark,
    pytest.mark.kafka,
    pytest.mark.slow,
    pytest.mark.timeout(60 * KILLS + int(8 * server_churn.SECONDS) + 300),
]


@pytest.fixture(scope="module")
def server(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server that works, and then falls."""
    with Server(tmp_path_factory.mktemp("kills") / "home", broker, JVM_OPTIONS) as running:
        yield running


@pytest.mark.alone
def test_every_answer_by_http_is_right_and_fresh(server: Server, broker: str, tmp_path: Path) -> None:
    server_churn.churn(server, broker, tmp_path)


@pytest.mark.alone
def test_kills_at_random_under_load(server: Server, broker: str, tmp_path: Path) -> None:
    home, topic, chance = server.home, "soak-server-kills", random.Random(SEED)
    create_topic(broker, topic, PARTITIONS)
    events = make_events(KILLS * 15 * ROWS_PER_S, seed=29)
    with producing(broker, topic) as producer:
        client = Client(server.url, patient=True)
        create_tables(client, topic, broker)
        load = Load(server.url, events, oracles_of(events), patient=True)
        load.start(producer, tmp_path / "corrections", rows_per_s=ROWS_PER_S, readers=READERS, seed=SEED)
        took: list[tuple[str, float]] = []
        try:
            for victims in _order(chance):
                load.wait(chance.uniform(*PAUSE_S))
                took.append(("+".join(victims), _kill_and_heal(server, victims)))
                print(f"\n{took[-1][0]} killed: healthy again in {took[-1][1]:.1f} s", end="", flush=True)
        finally:
            load.stop()
        runs = check_runs(client, load, home)
        checked = check_answers(load, lineage_of(client), home)
        check_end(client, load, events[: load.produced()])
        client.close()
        end_while_a_successor_takes_over(server, 1.5)
    seconds = [one for _, one in took]
    median, longest = statistics.median(seconds), max(seconds)
    print(f"\n{len(took)} kills: healthy again in {median:.1f} s (median), {longest:.1f} s (max)")
    print(f"{len(load.answers)} answers: {checked}; {load.produced()} rows, all once")
    print(f"runs: {counted(runs)}; {load.lost} answers were lost")
    assert longest < HEALTHY_S_MAX, took
    assert runs[(MOVE, "DONE")], runs


def _order(chance: random.Random) -> list[tuple[str, ...]]:
    """Each kind of death comes before any comes again."""
    order: list[tuple[str, ...]] = []
    while len(order) < KILLS:
        order += chance.sample(list(VICTIMS), len(VICTIMS))
    return order[:KILLS]


def _kill_and_heal(server: Server, victims: tuple[str, ...]) -> float:
    """The seconds until every process that fell has its successor and the server is ready."""
    running = _processes(server)
    before = {role: running[role] for role in VICTIMS[victims]}
    doomed = [pid for role in victims for pid in running[role]]
    assert len(doomed) == len(victims), (victims, running, server.logged())
    killed_at = time.monotonic()
    for pid in doomed:
        os.kill(pid, signal.SIGKILL)
    while not (_succeeded(server, before) and server.is_ready()):
        took_s = time.monotonic() - killed_at
        assert took_s < 4 * HEALTHY_S_MAX, f"{victims}: not healthy after {took_s:.0f} s\n{server.logged()}"
        time.sleep(0.2)
    return time.monotonic() - killed_at


def _succeeded(server: Server, before: dict[str, set[int]]) -> bool:
    now = _processes(server)
    return all(now[role] and not now[role] & pids for role, pids in before.items())


def _processes(server: Server) -> dict[str, set[int]]:
    """The processes of the server by role: its session, and its JVM, which has its own and is known by its log.

    By /proc: starting `ps` so often would take the cores from what has to start.
    """
    found: dict[str, set[int]] = defaultdict(set)
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            words = (folder / "cmdline").read_text().split("\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        is_ours = int(session) == server.process.pid or any(server.jvm_mark in word for word in words)
        if is_ours and state not in "ZX":
            found[_role(words)].add(int(folder.name))
    return found


def _role(words: list[str]) -> str:
    if "--role" in words:
        return words[words.index("--role") + 1]
    is_serve = "hybrid.cli" in words and "serve" in words
    return SUPERVISOR if is_serve else JVM if words[0].endswith("java") else "other"


def end_while_a_successor_takes_over(server: Server, after_s: float) -> None:
    """`serve` is dead and its roles are about to take its place: who ends the group now ends the server."""
    os.kill(server.address["pid"], signal.SIGKILL)
    time.sleep(after_s)
    os.killpg(server.process.pid, signal.SIGTERM)
    _ends(server)


@pytest.mark.skipif(IS_SHORT, reason="the servers of the other tests end so: soon, and when the successor starts")
@pytest.mark.parametrize("after_s", [0.0, 0.5, 1.5, 4.5])
def test_sigterm_while_a_successor_takes_over(home: Path, after_s: float) -> None:
    with Server(home, env=JVM_OPTIONS) as server:
        end_while_a_successor_takes_over(server, after_s)


# Before there are roles, and while the JVM starts.
@pytest.mark.parametrize("after_s", [0.5, 2.5] if IS_SHORT else [0.5, 1.5, 2.5, 4.0])
def test_sigterm_while_it_starts(home: Path, after_s: float) -> None:
    server = Server(home, env=JVM_OPTIONS)
    try:
        time.sleep(after_s)
        server.process.terminate()
        _ends(server)
    finally:
        server.kill()


def _ends(server: Server) -> None:
    """Nothing of the server's session is left in time."""
    deadline = time.monotonic() + END_S_MAX
    while left := {role: pids for role, pids in _processes(server).items() if pids}:
        assert time.monotonic() < deadline, f"{left} after {END_S_MAX} s\n{server.logged()}"
        time.sleep(0.1)
