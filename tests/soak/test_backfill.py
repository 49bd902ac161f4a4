"""A backfill over a live table: every answer is the oracle's from before or after each bucket's commit, while rows
arrive, moves run, and the process that corrects is killed and goes on; no bucket is corrected twice.

HYBRID_BACKFILL_BUCKETS=400 HYBRID_KILLS=30 makes it long.
"""

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hybrid.lake.commit_context import CommitContext
from hybrid.lake.plans import corrected_spans, runner
from hybrid.move.move import run_move
from hybrid.move.plan import Reach
from hybrid.replace.lineage import ReplacementEntry, entries_of
from hybrid.table.plans import Plan
from tests.replace.backfill.lab import BUCKET, Lab
from tests.shared_jvm import start_forked
from tests.soak import harness
from tests.soak.backfilled import Answer, Arrivals, Crowd, Reader, check_answers, check_rows, filled, planned
from tests.watchdog import watch

BUCKETS = int(os.environ.get("HYBRID_BACKFILL_BUCKETS", "8"))
KILLS = int(os.environ.get("HYBRID_KILLS", "2"))
SEED = int(os.environ.get("HYBRID_KILLS_SEED", "5"))
IS_LONG = BUCKETS > 50
# A long run would end with more files in REALTIME than the readers can open.
PAUSE_S = 1.0 if IS_LONG else 0.2
# Whoever only asks must not take the cores from what there is to ask about.
FILES_PAUSE_S, CACHE_PAUSE_S = 0.3, 0.15
JVM_OPTIONS = {} if IS_LONG else harness.JVM_OPTIONS
MOVES = 8 if IS_LONG else 2
LIFE_S_MAX = 300.0
POSITIONS = ("inside", "before", "after")
WORKER = "tests.replace.backfill.killed_worker"

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(240 + 10 * BUCKETS + 60 * KILLS)]


@dataclass
class Scene:
    """A table with a plan of all its buckets, and who is about it."""

    lab: Lab
    plan: Plan
    buckets: int
    arrivals: Arrivals
    readers: list[Reader]
    moved: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, bench: CommitContext, folder: Path, buckets: int) -> "Scene":
        lab = filled(bench, folder, buckets)
        arrivals = Arrivals(lab.halves, buckets, PAUSE_S)
        pauses = {False: FILES_PAUSE_S, True: CACHE_PAUSE_S}
        readers = [Reader(lab, arrivals, buckets, cached, pause_s) for cached, pause_s in pauses.items()]
        return cls(lab, planned(lab, buckets), buckets, arrivals, readers)

    @property
    def crowd(self) -> Crowd:
        return Crowd(self.arrivals.go_on, self.move, *(reader.go_on for reader in self.readers))

    @property
    def done(self) -> int:
        return len(corrected_spans(self.lab.offline, self.plan.id))

    @property
    def entries(self) -> list[ReplacementEntry]:
        return entries_of(self.lab.offline)

    @property
    def answers(self) -> list[Answer]:
        return [answer for reader in self.readers for answer in reader.answers]

    def move(self, stop: threading.Event) -> None:
        """Moves what has arrived, each time that a further share of the buckets is done."""
        for number in range(1, MOVES + 1):
            moved = self.arrivals.committed
            while self.done < self.buckets * number // (MOVES + 1) or self.arrivals.committed < moved + 10:
                if stop.wait(0.2):
                    return
            report = run_move(self.lab.context, reach=Reach(None))
            self.moved.append(report.sentence)

    def run_to_the_end(self, **how: object) -> None:
        with runner(self.lab.halves.layout, self.plan.id):
            self.lab.run(self.plan, **how)

    def await_answers(self, crowd: Crowd) -> None:
        """Until each reader has answers to questions from now on."""
        had = [len(reader.answers) for reader in self.readers]
        crowd.wait_until(
            lambda: all(len(reader.answers) > n + 1 for reader, n in zip(self.readers, had, strict=True)), 120
        )


@pytest.mark.parametrize("buckets", sorted({1, BUCKETS}))
def test_killed_and_resumed_over_a_live_table(buckets: int, workbench: CommitContext, tmp_path: Path) -> None:
    scene, chance = Scene.of(workbench, tmp_path, buckets), random.Random(SEED)
    kills = max(1, min(KILLS, buckets // 3))  # a life may take two buckets
    started = time.monotonic()
    with scene.crowd as crowd:
        scene.await_answers(crowd)
        deaths = [_live_and_die(scene, crowd, number, kills, chance) for number in range(kills)]
        scene.run_to_the_end()
        crowd.wait_until(lambda: len(scene.moved) == MOVES, LIFE_S_MAX)
        scene.await_answers(crowd)
    _report(scene, deaths, time.monotonic() - started)
    _check_end(scene, [[bucket] for bucket in range(buckets)])
    if buckets > 1:
        assert any(0 < len(answer.corrected) < buckets for answer in scene.answers)


def test_atomic_over_a_live_table(workbench: CommitContext, tmp_path: Path) -> None:
    scene = Scene.of(workbench, tmp_path, BUCKETS)
    started = time.monotonic()
    with scene.crowd as crowd:
        scene.await_answers(crowd)
        scene.run_to_the_end(atomic=True)
        crowd.wait_until(lambda: len(scene.moved) == MOVES, LIFE_S_MAX)
        scene.await_answers(crowd)
    _report(scene, [], time.monotonic() - started)
    _check_end(scene, [list(range(BUCKETS))])
    assert {len(answer.corrected) for answer in scene.answers} == {0, BUCKETS}


def _live_and_die(scene: Scene, crowd: Crowd, number: int, kills: int, chance: random.Random) -> str:
    """A process that runs the plan and is killed, by turns at a failpoint and at random; how it died."""
    # It may do this many buckets, so that some are left for all the others.
    share, before, born = max(1, scene.buckets // (kills + 1)), scene.done, time.monotonic()
    at = chance.randrange(1, share + 1)
    position = POSITIONS[number // 2 % len(POSITIONS)]
    point = f"backfill.commit.{position}@{at}" if number % 2 == 0 else ""
    if point:
        _die_at(scene, crowd, point)
    else:
        _die_at_random(scene, crowd, before + at, chance)
    return f"{point or 'at random'}, {before} to {scene.done} in {time.monotonic() - born:.0f} s"


def _die_at(scene: Scene, crowd: Crowd, point: str) -> None:
    log, arguments = scene.lab.folder / "worker.log", (str(scene.lab.folder),)
    worker = start_forked(point, scene.lab.bench, WORKER, arguments, log)
    try:
        crowd.wait_until(lambda: worker.exitcode is not None, LIFE_S_MAX)
        assert worker.exitcode == -signal.SIGKILL, f"{point}: ended by itself\n{log.read_text()[-3000:]}"
    finally:
        worker.kill()
        worker.join()


def _die_at_random(scene: Scene, crowd: Crowd, done: int, chance: random.Random) -> None:
    """The process has a JVM of its own, as the product has; it is killed once so many buckets are done."""
    log = scene.lab.folder / "worker.log"
    worker = _start(scene.lab.folder, log)
    try:
        crowd.wait_until(lambda: worker.poll() is not None or scene.done >= done, LIFE_S_MAX)
        time.sleep(chance.uniform(0, 0.5))
        _kill(worker, with_jvm=chance.random() < 0.5)
        crowd.wait_until(lambda: worker.poll() is not None, LIFE_S_MAX)
    finally:
        _kill(worker, with_jvm=True)  # when the test has failed meanwhile
    assert worker.wait() == -signal.SIGKILL, f"at random: ended by itself\n{log.read_text()[-3000:]}"


def _start(folder: Path, log: Path) -> subprocess.Popen[bytes]:
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", WORKER, str(folder)],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env={**os.environ, **JVM_OPTIONS},
            start_new_session=True,
        )
    watch(process)
    return process


def _kill(worker: subprocess.Popen[bytes], *, with_jvm: bool) -> None:
    """Kills it if it lives: Python alone, whose JVM may go on for a moment, or both at once."""
    if worker.poll() is None:
        (os.killpg if with_jvm else os.kill)(worker.pid, signal.SIGKILL)


def _check_end(scene: Scene, commits: Sequence[Sequence[int]]) -> None:
    """Each bucket was corrected by one commit; every row is there once; all answers were those of their revisions."""
    done = [[start // BUCKET for start, _ in entry.lineage.buckets if start is not None] for entry in scene.entries]
    assert sorted(done) == list(commits)
    assert not [sentence for sentence in scene.moved if "Nothing" in sentence]
    check_rows(scene.lab, scene.arrivals, scene.buckets)
    check_answers(scene.answers, scene.entries)


def _report(scene: Scene, deaths: Sequence[str], took_s: float) -> None:
    by_source = dict(Counter(answer.source for answer in scene.answers))
    between = sum(0 < len(answer.corrected) < scene.buckets for answer in scene.answers)
    print(f"\n{scene.buckets} buckets, {len(deaths)} kills in {took_s:.0f} s: {'; '.join(deaths)}")
    print(f"answers {by_source}, {between} of them between two buckets; {scene.arrivals.sent} rows arrived meanwhile")
    print("moves:", " ".join(scene.moved))
