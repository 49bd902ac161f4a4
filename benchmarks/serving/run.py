"""One go: Kafka with the topics, then each system on them, alone and in turn; what was found is written down."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.serving import pinot, report
from benchmarks.serving.bare import Bare
from benchmarks.serving.chdb import Chdb
from benchmarks.serving.freshness import freshness, sustained
from benchmarks.serving.loaded import Loaded, Unavailable
from benchmarks.serving.measure import Json, Oracle, latency, mixed
from benchmarks.serving.memory import bounded
from benchmarks.serving.pinot import Pinot
from benchmarks.serving.product import Product
from benchmarks.serving.questdb import QuestDb
from benchmarks.serving.restart import restarted
from benchmarks.serving.scenes import late, moving
from benchmarks.serving.stream import fill
from benchmarks.serving.tables import Table
from benchmarks.serving.workload import GROWING, HOUR_MS, PARTITIONS, START_MS, Events, Sizes, make_events
from hybrid.kafka.topics import create_topic
from tests.watchdog import running_broker

PARTS = ("latency", "peers", "freshness", "scenes", "growth", "restart", "memory")
_HALF_BUCKETS = 4  # of 6 h: the first day
_HALF_MS = START_MS + 24 * HOUR_MS
_SETTLE_S = 30.0  # after millions of rows, until nothing works at them any more
_SEGMENTS = 6.5  # of a partition: the last one is half full and consuming
_MODES = {"append": False, "upsert": True}
_PEER_MODES = ("append",)
_LOADED: tuple[type[Loaded], ...] = (QuestDb, Chdb, Bare)


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Plan:
    """What is measured, and how long."""

    parts: tuple[str, ...]
    systems: tuple[str, ...]
    rows: int
    growth: tuple[int, ...]
    restart: int
    rounds: int
    warm: int
    seconds: float
    samples: int
    scene_seconds: float
    flood: int
    flood_seconds: float

    def sizes_of(self, part: str) -> Json:
        rounds = {"rounds": self.rounds, "warm_rounds": self.warm}
        sizes: dict[str, Json] = {
            "latency": {"rows": self.rows, **rounds, "mixed_seconds": self.seconds},
            "peers": {"rows": self.rows, **rounds, "mixed_seconds": self.seconds},
            "freshness": {"samples": self.samples, "flood": self.flood, "flood_seconds": self.flood_seconds},
            "scenes": {"seconds": self.scene_seconds},
            "growth": {"rows": list(self.growth), **rounds},
            "restart": {"rows": self.restart},
            "memory": {"rows": self.rows},
        }
        return sizes[part]


class Run:
    """One go: the topics, then one system after the other. `found` holds results by part and system."""

    def __init__(self, plan: Plan, folder: Path, brokers: str, results: Path) -> None:
        self.plan, self._folder, self._brokers, self._results = plan, folder, brokers, results
        self.found: dict[str, Json] = {part: {} for part in plan.parts}
        self.versions: dict[str, str] = {}
        self.is_wrong = False
        self._commit = report.commit()  # before results are written, which makes the tree another one

    def go(self) -> None:
        has_stream = bool({Product.name, Pinot.name} & set(self.plan.systems))
        for topic, rows in self._topics().items() if has_stream else ():
            took_s = fill(self._brokers, topic, Sizes(rows))
            say(f"produced {rows:,} events to {topic} in {took_s:.0f} s")
        for kind in (Product, Pinot):
            if kind.name in self.plan.systems:
                self._streaming(kind)
        for loaded in _LOADED:
            if loaded.name in self.plan.systems:
                try:
                    self._over_files(loaded)
                except Unavailable as error:
                    say(f"{loaded.name} is left out: {error}")

    def _topics(self) -> dict[str, int]:
        found = {"orders": self.plan.rows} if {"latency", "peers", "memory"} & set(self.plan.parts) else {}
        if "growth" in self.plan.parts:
            found |= {f"growth_{rows}": rows for rows in self.plan.growth}
        if "restart" in self.plan.parts:
            found["restart"] = self.plan.restart
        return found

    def _streaming(self, kind: type[Product] | type[Pinot]) -> None:
        does: dict[str, Callable[[Any], Json]] = {
            "latency": self._latency,
            "peers": self._peers,
            "freshness": self._freshness,
            "scenes": self._scenes,
            "growth": self._growth,
            "restart": self._restart,
            "memory": self._memory,
        }
        say(f"{kind.name}: starts")
        with kind(self._folder, self._brokers) as system:
            self.versions[kind.name] = system.version
            for part in self.plan.parts:
                if part == "memory" and kind is Pinot:
                    continue  # it has no such bound
                started = time.perf_counter()
                self.found[part][kind.name] = does[part](system)
                self._save()
                say(f"{kind.name}: {part} done in {time.perf_counter() - started:.0f} s")

    def _latency(self, system: Product | Pinot) -> Json:
        return self._modes(system, tuple(_MODES))

    def _peers(self, system: Product | Pinot) -> Json:
        return self._modes(system, _PEER_MODES)

    def _modes(self, system: Product | Pinot, modes: Sequence[str]) -> Json:
        sizes = Sizes(self.plan.rows)
        events = make_events(sizes)
        tables, result = self._tables(system, events, modes)
        oracle = Oracle({"orders_append": events, "orders_upsert": events.latest()})
        for mode, table in tables.items():
            result[mode] |= self._measured(system, oracle, table.name, sizes)
        for table in tables.values():
            system.drop(table)
        return result

    def _tables(self, system: Product | Pinot, events: Events, modes: Sequence[str]) -> tuple[dict[str, Table], Json]:
        """The tables of the latency part, loaded, and how that went."""
        tables = {mode: self._table(f"orders_{mode}", "orders", _MODES[mode]) for mode in modes}
        half = events.before(_HALF_MS)
        return tables, {
            mode: self._loaded(system, table, self.plan.rows, half, move=True) for mode, table in tables.items()
        }

    def _measured(self, system: Product | Pinot | Loaded, oracle: Oracle, table: str, sizes: Sizes) -> Json:
        one = latency(system.endpoint, oracle, table, sizes, self.plan.rounds, self.plan.warm)
        say(f"{system.name}: {table}: " + ", ".join(f"{name} {ms['median']:.1f}" for name, ms in one["ms"].items()))
        eight = mixed(system.endpoint, oracle, table, sizes, self.plan.seconds)
        say(f"{system.name}: {table}: {eight['qps']:.0f} queries a second by 8 clients")
        self._judge(system.name, oracle)
        return {"one": one, "mixed": eight}

    def _freshness(self, system: Product | Pinot) -> Json:
        plan, found = self.plan, {}
        for mode, is_upsert in _MODES.items():
            table = Table(f"fresh_{mode}", f"fresh_{mode}_{system.name}", is_upsert, seal_rows=100_000)
            create_topic(self._brokers, table.topic, PARTITIONS)
            system.create(table)
            of = found[mode] = freshness(system.endpoint, self._brokers, table.name, table.topic, plan.samples)
            say(f"{system.name}: {table.name}: {of}")
            of["sustained"] = sustained(
                system.endpoint,
                self._brokers,
                table.name,
                table.topic,
                plan.flood,
                plan.flood_seconds,
                upsert=is_upsert,
            )
            say(f"{system.name}: {table.name}: sustained: {of['sustained']}")
            system.drop(table)
        return found

    def _scenes(self, system: Product | Pinot) -> Json:
        topic = f"scene_{system.name}"
        append, upsert = (
            Table(f"scene_{mode}", topic, is_upsert, seal_rows=30_000, bucket="1h")
            for mode, is_upsert in _MODES.items()
        )
        create_topic(self._brokers, topic, PARTITIONS)
        system.create(append)
        system.create(upsert)
        found = {"moving": moving(system, self._brokers, append, upsert, self.plan.scene_seconds)}
        say(f"{system.name}: {found}")
        found["late"] = late(system, self._brokers, append)
        say(f"{system.name}: {found['late']}")
        for table in (append, upsert):
            system.drop(table)
        return found

    def _growth(self, system: Product | Pinot) -> Json:
        """The product's older half is offline; Pinot keeps all in its REALTIME half, which spares it the second one."""
        result: Json = {}
        for rows in self.plan.growth:
            name = f"growth_{rows}"
            events, table = make_events(Sizes(rows)), self._table(name, name, upsert=False, rows=rows)
            given = self._loaded(system, table, rows, events.before(_HALF_MS), move=system.name == "product")
            time.sleep(_SETTLE_S)
            result[str(rows)] = given | self._grown(system, Oracle({name: events}), name, rows)
            system.drop(table)
        return result

    def _restart(self, system: Product | Pinot) -> Json:
        """One upsert table; with what its keys take in memory, where that can be asked."""
        sizes = Sizes(self.plan.restart)
        events = make_events(sizes)
        table = self._table("restart", "restart", upsert=True, rows=sizes.rows)
        found = self._loaded(system, table, sizes.rows, events.before(_HALF_MS), move=True)
        latest = events.latest()
        if isinstance(system, Product):
            found |= {"bytes": system.cached_bytes(), "index_bytes": system.cached_bytes("art_index")}
        found |= restarted(system, table, latest) | {"keys": len(latest)}
        say(f"{system.name}: {found}")
        system.drop(table)
        return found

    def _memory(self, system: Product) -> Json:
        sizes = Sizes(self.plan.rows)
        events = make_events(sizes)
        tables, _ = self._tables(system, events, tuple(_MODES))
        oracle = Oracle({"orders_append": events, "orders_upsert": events.latest()})
        found = bounded(system, oracle, list(tables.values()), sizes)
        self._judge(system.name, oracle)
        for table in tables.values():
            system.drop(table)
        return found

    def _grown(self, system: Product | Pinot | Loaded, oracle: Oracle, name: str, rows: int) -> Json:
        found = latency(system.endpoint, oracle, name, Sizes(rows), self.plan.rounds, self.plan.warm, GROWING)
        say(f"{system.name}: {name}: " + ", ".join(f"{what} {ms['median']:.1f}" for what, ms in found["ms"].items()))
        self._judge(system.name, oracle)
        return {"one": found}

    def _loaded(self, system: Product | Pinot, table: Table, rows: int, half: int, *, move: bool) -> Json:
        started = time.perf_counter()
        system.create(table)
        system.await_rows(table, rows)
        loaded_s = time.perf_counter() - started
        moved = system.move(table, _HALF_BUCKETS, half) if move else "nothing is offline"
        moved_s = time.perf_counter() - started - loaded_s
        system.await_warm(table)
        warm_s = time.perf_counter() - started - loaded_s - moved_s
        took = f"loaded in {loaded_s:.0f} s, moved in {moved_s:.0f} s, warm in {warm_s:.0f} s"
        say(f"{system.name}: {table.name}: {took}: {moved}")
        seconds = {"loaded_s": loaded_s, "moved_s": moved_s, "warm_s": warm_s}
        return {**{name: round(one, 1) for name, one in seconds.items()}, "moved": moved}

    def _over_files(self, kind: type[Loaded]) -> None:
        """The parts that a system without a stream takes part in."""
        parts = [part for part in kind.parts if part in self.plan.parts]
        if not parts:
            return
        say(f"{kind.name}: starts")
        events, sizes = self._events(parts), Sizes(self.plan.rows)
        with kind(self._folder, events) as system:
            self.versions[kind.name] = system.version
            oracle = Oracle(events)
            for part, modes in (("latency", tuple(_MODES)), ("peers", _PEER_MODES)):
                if part in parts:
                    self.found[part][kind.name] = {
                        mode: self._measured(system, oracle, f"orders_{mode}", sizes) for mode in modes
                    }
            if "growth" in parts:
                self.found["growth"][kind.name] = {
                    str(rows): self._grown(system, oracle, f"growth_{rows}", rows) for rows in self.plan.growth
                }
        self._save()

    def _events(self, parts: Sequence[str]) -> dict[str, Events]:
        """The rows to be seen of the tables that these parts ask, by table."""
        events = {}
        if {"latency", "peers"} & set(parts):
            events["orders_append"] = make_events(Sizes(self.plan.rows))
        if "latency" in parts:
            events["orders_upsert"] = events["orders_append"].latest()
        if "growth" in parts:
            events |= {f"growth_{rows}": make_events(Sizes(rows)) for rows in self.plan.growth}
        return events

    def _save(self) -> None:
        """After each part, so that what was measured is kept when a later one fails."""
        measured = {part: (self.plan.sizes_of(part), found) for part, found in self.found.items() if found}
        report.save(self._results, measured, self.versions, self._commit)

    def _table(self, name: str, topic: str, upsert: bool, rows: int | None = None) -> Table:
        return Table(name, topic, upsert, seal_rows=int((rows or self.plan.rows) / _SEGMENTS))

    def _judge(self, name: str, oracle: Oracle) -> None:
        """Wrong answers are a result of Pinot's; of all others they fail the run."""
        wrong = sum(oracle.wrong.values())
        if wrong:
            say(f"{name}: {wrong} of {oracle.checked} answers are wrong: " + "\n".join(oracle.examples))
            self.is_wrong |= name != "pinot"


def read_plan(words: Sequence[str] | None) -> tuple[Plan, argparse.Namespace]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.serving", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000, help="events of the latency part")
    parser.add_argument("--growth", default="1000000,4000000,16000000", help="sizes of the growth part")
    parser.add_argument("--restart", type=int, default=16_000_000, help="events of the restart part")
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--warm", type=int, default=100, help="rounds before those that count")
    parser.add_argument("--seconds", type=float, default=15, help="of mixed load")
    parser.add_argument("--samples", type=int, default=1000, help="of freshness")
    parser.add_argument("--scene-seconds", type=float, default=180)
    parser.add_argument("--flood", type=int, default=90_000, help="events a second of sustained freshness")
    parser.add_argument("--flood-seconds", type=float, default=30)
    parser.add_argument("--parts", default=",".join(PARTS))
    parser.add_argument("--systems", default=",".join(report.SYSTEMS))
    parser.add_argument("--results", type=Path, default=report.RESULTS)
    parser.add_argument("--report", action="store_true", help="only write docs/benchmarks.md anew from the results")
    given = parser.parse_args(words)
    parts, systems = tuple(given.parts.split(",")), tuple(given.systems.split(","))
    if not set(parts) <= set(PARTS) or not set(systems) <= set(report.SYSTEMS):
        parser.error(f"parts are {', '.join(PARTS)}; systems are {', '.join(report.SYSTEMS)}")
    why_not = {"pinot": pinot.missing, **{kind.name: kind.missing for kind in _LOADED}}
    for name in systems:
        reason = why_not[name]() if name in why_not else None
        if reason:
            say(f"{name} is left out: {reason}.")
            systems = tuple(other for other in systems if other != name)
    growth = tuple(int(rows) for rows in given.growth.split(","))
    plan = Plan(
        tuple(part for part in PARTS if part in parts),
        systems,
        given.rows,
        growth,
        given.restart,
        given.rounds,
        given.warm,
        given.seconds,
        given.samples,
        given.scene_seconds,
        given.flood,
        given.flood_seconds,
    )
    return plan, given


def main(words: Sequence[str] | None = None) -> int:
    plan, given = read_plan(words)
    is_wrong = not given.report and measure(plan, given.results)
    print(report.markdown(report.load(given.results)))
    if given.results == report.RESULTS:
        report.write_docs(report.load(given.results))
    return int(is_wrong)


def measure(plan: Plan, results: Path) -> bool:
    """Whether a system other than Pinot gave a wrong answer."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    with tempfile.TemporaryDirectory(prefix="hybrid-bench-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        with running_broker(folder / "broker") as brokers:
            run = Run(plan, folder, brokers, results)
            run.go()
    return run.is_wrong
