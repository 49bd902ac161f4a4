"""`hybrid.connect()`: the product as a library, one method per verb. The command line is thin over this.

It owns what no part below may own: the records of runs, and the order of steps that touch more than one part.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybrid.errors import ConflictError, NotFoundError, SpecError
from hybrid.lake.layout import TableLayout
from hybrid.lake.workbench import Workbench, new_act_id
from hybrid.progress import Progress, Silent
from hybrid.spec.settings import Settings, load_settings
from hybrid.spec.table_config import Half, TableSpec
from hybrid.table.state import Act, OfflineState, RealtimeState

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hybrid.catalog.catalog import Catalog, RunRecord, TableRecord
    from hybrid.ingest.loop import IngestReport
    from hybrid.move.move import MoveReport
    from hybrid.query.engine import QueryResult
    from hybrid.replace.job import JobReport
    from hybrid.spec.job_spec import JobSpec


def connect(home: str | Path | None = None, *, progress: Progress | None = None) -> Hybrid:
    """Opens a home (a folder with warehouse, catalog and logs; made when it is missing)."""
    return Hybrid(load_settings(home=str(home) if home is not None else None), progress or Silent())


def wall_clock_ms() -> int:
    """The machine's clock in epoch milliseconds."""
    return time.time_ns() // 1_000_000


class Hybrid:
    """A home and everything in it. `now_ms` is the clock that buckets are closed by."""

    def __init__(self, settings: Settings, progress: Progress, now_ms: Callable[[], int] = wall_clock_ms) -> None:
        self.settings = settings
        self.progress = progress
        self._now_ms = now_ms

    @property
    def home(self) -> Path:
        """The home's folder."""
        return self.settings.home

    @cached_property
    def catalog(self) -> Catalog:
        """The catalog of the home."""
        from hybrid.catalog.catalog import Catalog

        return Catalog.in_home(self.home)
