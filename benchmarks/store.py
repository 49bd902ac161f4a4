"""What a warehouse on an object store costs a commit, and how far a following home is behind.

The store is versitygw over a folder of the same disk (on PATH, or in GOBIN). So figures show what the product adds, and
not a network's round trips; `requests` says how many of these a commit waits for.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median

from hybrid.errors import OvertakenError
from hybrid.lake.log import open_half
from hybrid.lake.log_entries import newest_entry
from hybrid.lake.store_log import bring_entry, entry_of
from hybrid.lake.transaction import LogTransaction
from hybrid.table.state import Act, RealtimeState
from tests.every_type import every_type
from tests.lake.test_files import write
from tests.lake.test_transaction import COLUMNS, after, rows_of
from tests.mirrors import Writer, new_url
from tests.s3_server import S3Server, s3_server
from tests.store.store_proxy import store_proxy


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commits", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=1000, help="commits of each of two writers at once")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="hybrid-bench-") as folder,
        s3_server(Path(folder) / "s3" / "store") as server,
    ):
        server.create_bucket("bucket")
        os.environ.update(server.environment)
        _commits(Path(folder), server, options.commits)
        _pairs(Path(folder), options.pairs)


def _local(folder: Path) -> Path:
    from hybrid.config.table_config import Half
    from hybrid.lake.create import create_half

    half = folder / "local" / "t" / "REALTIME"
    create_half(half, every_type(), Half.REALTIME, RealtimeState(Act("create-0", 0, "create", "x")))
    return half


def _commit(half: Path, number: int) -> float:
    file = write(half, every_type(), rows_of("a", number))
    began = time.perf_counter()
    LogTransaction(half, COLUMNS).commit(after(half), [file])
    return (time.perf_counter() - began) * 1000


def _commits(folder: Path, server: S3Server, count: int) -> None:
    """The duration of a commit of one file here and there in turn, its requests, and the lag of a follower."""
    local, writer = _local(folder), Writer.at(folder / "a" / "warehouse", new_url()).create()
    follower = Writer.at(folder / "b" / "warehouse", writer.url, "b")
    follower.half.parent.mkdir(parents=True)
    (follower.half.parent / "REALTIME.key").write_text((writer.half.parent / "REALTIME.key").read_text())
    seen, done = dict[int, float](), threading.Event()

    def follow() -> None:
        version = 0
        while not done.is_set():
            text = entry_of(follower.mirror, follower.half, version)
            if text is None:
                time.sleep(0.02)
                continue
            bring_entry(follower.mirror, follower.half, version, text)
            seen[version], version = time.perf_counter(), version + 1

    here, there, committed = list[float](), list[float](), dict[int, float]()
    thread = threading.Thread(target=follow)
    thread.start()
    for number in range(count):
        here.append(_commit(local, number))
        there.append(_commit(writer.half, number))
        committed[number + 1] = time.perf_counter()
    time.sleep(1)
    done.set()
    thread.join()
    lags = [(seen[version] - at) * 1000 for version, at in committed.items()]
    print(f"commit of one file, ms, median of {count}: {median(here):.1f} here, {median(there):.1f} on the store")
    late = sorted(lags)[-max(1, count // 100)]
    print(f"a follower that looks every 20 ms has it after, ms: median {median(lags):.0f}, p99 {late:.0f}")
    with store_proxy(server) as proxy:
        os.environ["AWS_ENDPOINT_URL"] = f"http://{proxy.address}"
        counted = Writer.at(writer.folder, writer.url)
        _commit(counted.half, count)
        proxy.seen.clear()
        _commit(counted.half, count + 1)
        print("its requests:", ", ".join(request.method for request in proxy.seen))
        os.environ.update(server.environment)


def _pairs(folder: Path, pairs: int) -> None:
    """Two copies of a home commit at once: every commit is there once, and one follows the other."""
    first = Writer.at(folder / "p1" / "warehouse", new_url()).create()
    shutil.copytree(first.folder, folder / "p2" / "warehouse")
    second = Writer.at(folder / "p2" / "warehouse", first.url)
    overtaken = [0, 0]

    def work(place: int, writer: Writer) -> None:
        for number in range(place, 2 * pairs, 2):
            file = write(writer.half, every_type(), rows_of(f"s{number}", number))
            while True:
                try:
                    LogTransaction(writer.half, COLUMNS).commit(after(writer.half), [file])
                    break
                except OvertakenError:
                    overtaken[place] += 1

    began = time.perf_counter()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, (0, 1), (first, second)))
    seconds = time.perf_counter() - began
    while (text := entry_of(first.mirror, first.half, newest_entry(first.half) + 1)) is not None:
        bring_entry(first.mirror, first.half, newest_entry(first.half) + 1, text)
    half = open_half(first.half)
    names = [file.segment for file in half.files]
    assert sorted(names) == sorted(f"s{number}" for number in range(2 * pairs)) and half.state.act.number == 2 * pairs
    print(f"{pairs} pairs of commits by two writers: all {2 * pairs} are there once, {sum(overtaken)} planned again")
    print(f"{2 * pairs / seconds:.0f} commits/s")


if __name__ == "__main__":
    main()
