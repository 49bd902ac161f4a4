"""Whether a stream is decoded or left to commits: each rule, and random lives that keep the promises."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.query.cache.tail_mode import TailMode
from hybrid.query.cache.tuning import CacheTuning

RATE = 50_000
TUNING = CacheTuning()


def mode_of(*, rate: int | None = RATE, trusted: bool = True, tuning: CacheTuning = TUNING) -> TailMode:
    """A mode that has measured `rate` and, if trusted, a commit that overtook the stream at 0 s."""
    mode = TailMode(tuning)
    if rate is not None:
        mode.decoded(rate, 1.0)
    if trusted:
        mode.committed(0.0, 30_000, 30_000)
    return mode


def awaiting(unread: int = 1_000_000) -> TailMode:
    mode = mode_of()
    assert mode.decide(0.0, unread, may_await=True)
    return mode


def test_the_limit_is_what_is_decoded_between_two_commits() -> None:
    assert mode_of(rate=None).limit == 20_000 and mode_of(rate=None).files_limit == 100_000
    assert mode_of().limit == mode_of().files_limit == 3 * RATE, "commits are assumed to be 3 s apart at first"
    assert mode_of(rate=1000).limit == 20_000, "one poll"
    mode = mode_of()
    for second in range(100):
        mode.committed(10.0 + 6.0 * second, 1, 0)
    assert mode.limit == pytest.approx(6 * RATE, rel=0.01)


def test_quiet_times_and_bursts_of_commits_are_no_rhythm() -> None:
    mode = mode_of()
    for hour in range(1, 100):
        mode.committed(3600.0 * hour, 1, 0)
    assert mode.limit == pytest.approx(10 * RATE, rel=0.01)
    for tick in range(100):
        mode.committed(360_000.0 + tick / 100, 1, 0)
    assert mode.limit == pytest.approx(RATE, rel=0.01)


def test_few_messages_and_commits_without_offsets_are_not_measured() -> None:
    mode = mode_of(trusted=False)
    mode.decoded(999, 0.001)
    mode.decoded(5000, 0.0)
    mode.committed(1.0, 0, 0)
    mode.committed(9.0, 0, 0)
    assert mode.limit == 3 * RATE


def test_commits_are_awaited_beyond_the_limit() -> None:
    mode = mode_of()
    assert not mode.decide(1.0, 3 * RATE, may_await=True) and not mode.is_awaiting
    assert mode.decide(1.0, 3 * RATE + 1, may_await=True) and mode.is_awaiting


@pytest.mark.parametrize(
    ("rate", "trusted", "may_await"), [(None, True, True), (RATE, False, True), (RATE, True, False)]
)
def test_the_stream_is_read_before_anything_is_measured_trusted_or_shown(
    rate: int | None, trusted: bool, may_await: bool
) -> None:
    assert not mode_of(rate=rate, trusted=trusted).decide(1.0, 10**9, may_await=may_await)


def test_a_commit_earns_trust_that_overtakes_the_rows_by_more_than_a_poll() -> None:
    mode = mode_of(trusted=False)
    mode.committed(1.0, 10**6, 20_000)
    assert not mode.decide(1.0, 10**9, may_await=True)
    mode.committed(2.0, 10**6, 20_001)
    assert mode.decide(2.0, 10**9, may_await=True)


def test_the_stream_is_read_again_after_a_commit_near_the_end() -> None:
    mode = awaiting()
    assert not mode.decide(1.0, RATE, may_await=True), "no commit was followed yet"
    mode.committed(1.0, 900_000, 900_000)
    assert not mode.decide(1.0, 2 * RATE, may_await=True), "above half of the limit"
    mode.committed(2.0, 90_000, 90_000)
    assert mode.decide(2.0, RATE // 2, may_await=True) and not mode.is_awaiting


def test_nobody_waits_longer_than_decoding_would_have_taken() -> None:
    mode = awaiting()
    assert not mode.decide(19.9, 1_500_000, may_await=True)
    assert mode.decide(20.0, 1_500_000, may_await=True) and not mode.is_awaiting
    assert not mode.decide(20.1, 1_500_000, may_await=True), "trust has to be earned anew"
    mode.committed(21.0, 30_000, 30_000)
    assert mode.decide(21.0, 1_500_000, may_await=True)


def test_a_rate_that_was_measured_far_too_low_puts_nothing_off_for_hours() -> None:
    mode = mode_of(rate=None, trusted=False)
    mode.decoded(1000, 10.0)
    mode.committed(0.0, 30_000, 30_000)
    assert mode.decide(0.0, 1_000_000, may_await=True)
    assert mode.decide(60.0, 1_000_000, may_await=True) and not mode.is_awaiting


@pytest.mark.parametrize(("advanced", "awaits"), [(15 * RATE, True), (15 * RATE - 1, False)])
def test_only_a_commit_as_fast_as_decoding_extends_the_wait(advanced: int, awaits: bool) -> None:
    mode = awaiting()
    mode.committed(15.0, advanced, advanced)
    assert not mode.decide(15.0, 2_000_000, may_await=True)
    mode.decide(20.0, 2_000_000, may_await=True)
    assert mode.is_awaiting is awaits
    if awaits:
        assert not mode.decide(15.0 + 39.9, 2_000_000, may_await=True)
        assert mode.decide(15.0 + 40.0, 2_000_000, may_await=True)


def test_a_build_from_the_files_begins_with_the_stream_and_without_trust() -> None:
    mode = awaiting()
    mode.restarts()
    assert not mode.is_awaiting and mode.limit == 3 * RATE
    assert not mode.decide(1.0, 10**9, may_await=True)


def test_before_the_first_commit_a_backlog_is_decoded_in_half_of_the_time() -> None:
    mode = mode_of(trusted=False)
    mode.decide(1.0, 3 * RATE, may_await=True)
    assert mode.rest_s(0.3) == 0.0, "that is no backlog"
    mode.decide(1.0, 3 * RATE + 1, may_await=True)
    assert mode.rest_s(0.3) == 0.3 and mode.rest_s(9.0) == 0.5
    mode.committed(2.0, 100, 100)
    assert mode.rest_s(0.3) == 0.0, "commits are slower than decoding"
    mode.restarts()
    mode.decide(3.0, 3 * RATE + 1, may_await=True)
    assert mode.rest_s(0.3) == 0.3
    assert awaiting().rest_s(0.3) == 0.0


def believing(unread: int = 1_000_000) -> TailMode:
    mode = mode_of(trusted=False)
    assert mode.decide(0.0, unread, may_await=True, is_ingested=lambda: True) and mode.is_awaiting
    return mode


def test_the_first_commit_is_awaited_where_ingestion_evidently_runs() -> None:
    mode = believing()
    assert mode.rest_s(0.3) == 0.0
    mode.committed(4.0, 200_000, 200_000)
    assert not mode.decide(4.0, 800_000, may_await=True), "as fast as decoding would have been"
    assert not mode.decide(4.0 + 15.9, 800_000, may_await=True), "it is trusted now, and a backlog takes as long"
    assert mode.decide(4.0 + 16.0, 800_000, may_await=True) and not mode.is_awaiting


@pytest.mark.parametrize(("unread", "deadline_s"), [(10**9, 10.0), (200_000, 4.0)])
def test_nobody_waits_for_the_first_commit_longer_than_ten_seconds_or_decoding(unread: int, deadline_s: float) -> None:
    mode = believing(unread)
    assert not mode.decide(deadline_s - 0.1, unread, may_await=True)
    assert mode.decide(deadline_s, unread, may_await=True) and not mode.is_awaiting


def test_evidence_does_not_suffice_twice_without_a_commit() -> None:
    """Nor after a build from the files: else an ingestion that hangs would hide rows again and again."""
    mode = believing()
    mode.decide(10.0, 10**9, may_await=True)
    for _ in range(2):
        assert not mode.decide(11.0, 10**9, may_await=True, is_ingested=lambda: pytest.fail("it is asked for"))
        assert mode.rest_s(0.3) == 0.3
        mode.restarts()
    mode.committed(12.0, 100, 0)
    assert not mode.decide(12.0, 10**9, may_await=True)
    assert mode.decide(12.0, 10**9, may_await=True, is_ingested=lambda: True)


def test_a_first_commit_that_is_slower_than_decoding_leaves_the_deadline() -> None:
    mode = believing()
    mode.committed(9.0, 100_000, 100_000)
    assert mode.decide(10.0, 900_000, may_await=True) and not mode.is_awaiting


@pytest.mark.parametrize(("unread", "may_await"), [(3 * RATE, True), (10**9, False)])
def test_evidence_is_asked_for_only_where_it_matters(unread: int, may_await: bool) -> None:
    mode = mode_of(trusted=False)
    assert not mode.decide(0.0, unread, may_await=may_await, is_ingested=lambda: pytest.fail("it is asked for"))


def test_a_quiet_time_before_does_not_make_a_commit_slow() -> None:
    mode = mode_of()
    assert mode.decide(3600.0, 1_000_000, may_await=True)
    mode.committed(3610.0, 600_000, 600_000)
    mode.decide(3610.0, 700_000, may_await=True)
    mode.decide(3620.0, 700_000, may_await=True)
    assert mode.is_awaiting


def test_it_can_be_turned_off() -> None:
    mode = mode_of(tuning=CacheTuning(tail_offsets_min=math.inf))
    assert not mode.decide(1.0, 10**12, may_await=True) and mode.files_limit == math.inf


def test_its_status_says_why_and_until_when() -> None:
    status = awaiting().status(5.0)
    assert (status.awaits, status.since_s, status.left_s) == (True, 5.0, 15.0)
    assert (status.unread, status.limit, status.decoded_per_s) == (1_000_000, 3 * RATE, RATE)
    assert (status.to_commits, status.to_stream) == (1, 0)


@dataclass
class World:
    """A stream, ingestion and one follower, second by second."""

    mode: TailMode
    end: float = 0.0
    committed: float = 0.0
    position: float = 0.0
    commits: int = 0

    def tick(self, now: float, arrivals: int, commit: float, *, ingests: bool = False) -> None:
        self.end += arrivals
        if commit > 0:
            before = self.committed
            self.committed += commit * (self.end - before)
            overtaken = max(0.0, self.committed - self.position)
            self.position += overtaken
            if int(self.committed - before) > 0:
                self.commits += 1
            self.mode.committed(now, int(self.committed - before), int(overtaken))
        if not self.mode.is_awaiting:
            share = 1 / (1 + self.mode.rest_s(0.25) / 0.25)
            decoded = min(self.end - self.position, share * RATE)
            self.position += decoded
            self.mode.decoded(int(decoded), decoded / RATE)  # rests are not measured
        self.mode.decide(now, int(self.end - self.position), may_await=True, is_ingested=lambda: ingests)


ticks = st.tuples(st.sampled_from([0, 500, 40_000, 100_000, 400_000]), st.sampled_from([0.0, 0.0, 0.0, 0.1, 0.9, 1.0]))


@given(st.lists(ticks, max_size=120), st.booleans())
def test_switches_are_rare_and_rows_become_visible_without_commits(
    life: list[tuple[int, float]], ingests: bool
) -> None:
    """Also where an ingestion runs that never commits again."""
    world = World(TailMode(TUNING))
    world.mode.decoded(RATE, 1.0)
    now = 0.0
    for arrivals, commit in life:
        now += 1.0
        world.tick(now, arrivals, commit, ingests=ingests)
        switches = world.mode.switches
        assert switches[False] <= switches[True] <= world.commits + ingests
    # Ingestion dies: everything is visible within twice the time of decoding it, and 10 s later where it only hangs.
    left_s = (world.end - world.position) / RATE
    for _ in range(math.ceil(2 * left_s) + 2 + 10 * ingests):
        now += 1.0
        world.tick(now, 0, 0.0, ingests=ingests)
    assert world.position == pytest.approx(world.end)
