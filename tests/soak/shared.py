"""What readers, who are processes of their own, and those who write tell each other."""

import ctypes
import multiprocessing
from dataclasses import dataclass
from multiprocessing.sharedctypes import RawArray
from multiprocessing.synchronize import Event as Flag
from typing import Any

from tests.soak.events import PARTITIONS, TABLES

SPAWN = multiprocessing.get_context("spawn")
_CUTS_MAX = 10_000
_TABLES = tuple(sorted(TABLES))

Numbers = ctypes.Array[Any]


@dataclass(frozen=True)
class Cuts:
    """Up to which times rows of each table have expired, one cut after the other; the first one drops nothing.

    A cut may count from when it is proposed, before its run is scheduled, and those before it do not count any more
    once it is done, after its run. Numbers of a table are only added, by one writer, so that nobody needs a lock.
    """

    times: Numbers
    lasts_proposed: Numbers
    lasts_done: Numbers

    @classmethod
    def of(cls) -> "Cuts":
        times, proposed, done = (RawArray("q", size) for size in (len(_TABLES) * _CUTS_MAX, len(_TABLES), len(_TABLES)))
        return cls(times, proposed, done)

    def propose(self, table: str, cut_ms: int) -> None:
        place = _TABLES.index(table)
        self.times[place * _CUTS_MAX + self.lasts_proposed[place] + 1] = cut_ms
        self.lasts_proposed[place] += 1

    def settle(self, table: str) -> None:
        """What was proposed last is done."""
        place = _TABLES.index(table)
        self.lasts_done[place] = self.lasts_proposed[place]

    def done(self, table: str) -> int:
        """The number of the last cut that is done."""
        return int(self.lasts_done[_TABLES.index(table)])

    def since(self, table: str, first: int) -> list[int]:
        """The cuts from number `first` to the one that is proposed."""
        place = _TABLES.index(table)
        start = place * _CUTS_MAX
        return list(self.times[start + first : start + self.lasts_proposed[place] + 1])

    def last_ms(self, table: str) -> int:
        """The cut that was proposed last."""
        return self.since(table, 0)[-1]


@dataclass(frozen=True)
class Shared:
    """By partition: what was given to Kafka, what it acknowledged. By reader: how many answers, how many wrong ones.

    Each number has one who writes it, so that none needs a lock.
    """

    offered: Numbers
    acknowledged: Numbers
    answers: Numbers
    wrong: Numbers
    cuts: Cuts
    stopped: Flag

    @classmethod
    def of(cls, readers: int) -> "Shared":
        by_partition, by_reader = (PARTITIONS, PARTITIONS), (readers, readers)
        offered, acknowledged, answers, wrong = (RawArray("q", size) for size in by_partition + by_reader)
        return cls(offered, acknowledged, answers, wrong, Cuts.of(), SPAWN.Event())
