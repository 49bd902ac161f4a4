"""A system without a stream: one server process, loaded from Parquet files of the events before it is measured."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Self

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.serving.http import Client, Endpoint
from benchmarks.serving.workload import STATUSES, Events
from hybrid.jvm.broker import free_port
from tests.watchdog import watch

HOST = "127.0.0.1"
_START_S = 120.0


def cache_folder() -> Path:
    """Where the libraries of other systems are kept between runs."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "hybrid-benchmarks"


class Unavailable(Exception):
    """A system's library cannot be had on this machine."""


def fetch_once(folder: Path, command: Callable[[Path], Sequence[str]]) -> None:
    """Fills a folder by a command, all or nothing, unless it exists. Unavailable when the command fails."""
    if folder.exists():
        return
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        subprocess.run(command(part), check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise Unavailable(str(error)) from error
    part.rename(folder)


class Loaded(ABC):
    """A server over tables by name. Use it in a `with`: it is started, loaded and stopped.

    `parts` are the parts of the benchmark that it is measured in. Its rows are what is to be seen: it has no stream, no
    boundary and no upsert.
    """

    name: ClassVar[str]
    parts: ClassVar[tuple[str, ...]] = ("peers",)

    def __init__(self, folder: Path, tables: Mapping[str, Events]) -> None:
        self.folder, self._log = folder / self.name, folder / f"{self.name}.log"
        self.files = self.folder / "files"
        self.files.mkdir(parents=True)
        self.tables = list(tables)
        for name, events in tables.items():
            pq.write_table(_columns(events), self.files / f"{name}.parquet")
        self.port = free_port()

    @staticmethod
    def missing() -> str | None:
        """Why it cannot be run here; None when it can."""
        return None

    @property
    @abstractmethod
    def version(self) -> str:
        """What it is called in reports."""

    @property
    @abstractmethod
    def endpoint(self) -> Endpoint:
        """Where and how it is asked."""

    @abstractmethod
    def command(self) -> list[str]:
        """The command of its server."""

    def environment(self) -> Mapping[str, str]:
        """What its server's environment has beside ours."""
        return {}

    def prepare(self) -> None:  # noqa: B027
        """Fetches and configures what the server needs, before it starts. Raises Unavailable."""

    def load(self, client: Client) -> None:  # noqa: B027
        """Loads the files into a server that answers, unless it has done so by itself."""

    def __enter__(self) -> Self:
        self.prepare()
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self.command(),
                env={**os.environ, **self.environment()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        watch(self._process)
        try:
            self._await_answer()
            client = Client(self.endpoint)
            self.load(client)
            client.close()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _await_answer(self) -> None:
        deadline = time.monotonic() + _START_S
        while True:
            client = Client(self.endpoint)
            try:
                if client.rows("select 1") == [[1]]:
                    return
            except OSError:
                pass
            finally:
                client.close()
            assert time.monotonic() < deadline and self._process.poll() is None, self._log.read_text()
            time.sleep(0.1)


def _columns(events: Events) -> pa.Table:
    return pa.table(
        {
            "order_id": events.order_id,
            "customer_id": events.customer_id,
            "order_status": pa.DictionaryArray.from_arrays(pa.array(events.status, pa.int32()), list(STATUSES)),
            "amount": events.amount,
            "ts": events.ts,
        }
    )
