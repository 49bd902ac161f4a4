"""Flow files in a home of their own, run in this process."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from hybrid.api.hybrid import Hybrid
from hybrid.config.settings import load_settings
from hybrid.config.table_config import Half
from hybrid.flow.declared.runner import FlowReport
from hybrid.lake.commit_context import CommitContext
from hybrid.lake.log import open_half
from hybrid.progress import Silent


class FlowHome:
    """Runs flow files, and shows what they left."""

    def __init__(self, folder: Path, bench: CommitContext | None) -> None:
        self.folder = folder
        self.api = Hybrid(load_settings(home=folder / "home"), Silent())
        if bench is not None:
            vars(self.api)["bench"] = CommitContext(lambda: bench.spark, self.api.context.now_ms, Silent())

    def file(self, text: str, name: str = "flows.py") -> Path:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def load(self, text: str, name: str = "flows.py", **variables: str):
        return self.api.load_flows(self.file(text, name), variables)

    def run(
        self, text: str, name: str = "flows.py", refresh: str | None = "", **variables: str
    ) -> dict[str, FlowReport]:
        """Reports by the flows' names; `refresh` a name, None for all, "" for none."""
        self.session = self.load(text, name, **variables)
        chosen = [] if refresh == "" else self.session.declaration.chosen(refresh)
        return {report.flow: report for report in self.api.run_flows(self.session, chosen)}

    def rows(self, sql: str) -> list[tuple]:
        return [tuple(row) for row in self.api.query(sql).rows]

    def state(self, table: str, half: Half):
        return open_half(self.api.context.layout(table).half(half)).state

    def write(self, path: str, *rows: Mapping[str, object] | str) -> Path:
        """A file of JSON lines below the folder `in`; a text is a line as it is."""
        found = self.folder / "in" / path
        found.parent.mkdir(parents=True, exist_ok=True)
        found.write_text("".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows))
        return found

    @property
    def root(self) -> str:
        return str(self.folder / "in")


@pytest.fixture
def flow_home(tmp_path: Path) -> FlowHome:
    """Without Spark: for what files declare."""
    return FlowHome(tmp_path, None)


@pytest.fixture
def spark_home(tmp_path: Path, workbench: CommitContext) -> FlowHome:
    return FlowHome(tmp_path, workbench)


STREAM = """
from hybrid import flows

flows.create_streaming_table("events"{table})

@flows.append_flow(target="events", name="new")
def new():
    return flows.read_files_stream("{root}", format="json"{options}).load()
"""


@pytest.fixture
def stream_file(tmp_path: Path) -> Callable[..., str]:
    """A file with one incremental flow `new` of table `events`."""

    def make(options: str = "", table: str = "") -> str:
        more = f", {options}" if options else ""
        return STREAM.format(root=tmp_path / "in", options=more, table=f", {table}" if table else "")

    return make
