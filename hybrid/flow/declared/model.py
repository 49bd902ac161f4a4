"""The declarations of a flow file: tables, and the flows that append to them. Values and their rules; no engine.

Target and name identify a flow, whatever its file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hybrid.errors import SpecError, suggestion

# A flow's name is part of the coordinate keys of its rows, in which a slash is the separator.
_FLOW_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,199}")
_TABLE_NAME = re.compile(r"[A-Za-z0-9_]{1,100}")

# The table properties that have an effect.
TABLE_PROPERTIES = (
    "hybrid.timeColumn",
    "hybrid.timeFormat",
    "hybrid.bucketTimePeriod",
    "hybrid.bufferTimePeriod",
    "hybrid.mergeType",
    "hybrid.maxNumRecordsPerSegment",
    "hybrid.maxNumRecordsPerTask",
    "hybrid.schedule",
    "hybrid.sortedColumn",
)


@dataclass(frozen=True)
class FlowTable:
    """A declared target. `schema` is a Spark schema, a DDL text, or None: derived from the flows' rows."""

    name: str
    place: str
    comment: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    schema: Any = None


@dataclass(frozen=True)
class Flow:
    """A declared flow. `query()` returns its rows as a Spark frame; it is called for every micro-batch.

    `place` is its position in the file, for messages.
    """

    target: str
    name: str
    place: str
    query: Callable[[], Any]
    once: bool = False
    comment: str | None = None

    @property
    def kind(self) -> str:
        """`once` or `incremental`."""
        return "once" if self.once else "incremental"

    def __str__(self) -> str:
        return f"{self.target}.{self.name}"


@dataclass
class Declaration:
    """Everything that the file `source` declares, in its order, with warnings of declarations without effect."""

    source: str
    tables: dict[str, FlowTable] = field(default_factory=dict)
    flows: list[Flow] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add_table(self, table: FlowTable) -> None:
        """SpecError for invalid or repeated names, and for unknown properties."""
        if not _TABLE_NAME.fullmatch(table.name):
            plain = table.name.rpartition(".")[2]
            hint = f"Write '{plain}'." if _TABLE_NAME.fullmatch(plain) else None
            message = f"'{table.name}' is no name of a table: letters, digits and _, at most 100; no catalog or schema."
            raise SpecError.at(self.source, table.place, message, hint=hint)
        if table.name in self.tables:
            message = f"table '{table.name}' is created twice, first at {self.tables[table.name].place}. Remove one."
            raise SpecError.at(self.source, table.place, message)
        for name in table.properties:
            if name.startswith("hybrid.") and name not in TABLE_PROPERTIES:
                properties = ", ".join(TABLE_PROPERTIES)
                near = suggestion(name, TABLE_PROPERTIES)
                message = f"table '{table.name}': '{name}' is no property of a table.{near} There are: {properties}."
                raise SpecError.at(self.source, table.place, message)
        self.tables[table.name] = table

    def add_flow(self, flow: Flow) -> None:
        """SpecError for invalid names, and for names that are repeated on a table."""
        if not _FLOW_NAME.fullmatch(flow.name):
            message = f"'{flow.name}' is no name of a flow: letters, digits, _, - and ., at most 200."
            raise SpecError.at(self.source, flow.place, message)
        for other in self.flows:
            if (other.target, other.name) == (flow.target, flow.name):
                message = (
                    f"flow '{flow.name}' of table '{flow.target}' is given twice, first at {other.place}. "
                    "A flow is known by its name: give one of them another."
                )
                raise SpecError.at(self.source, flow.place, message)
        self.flows.append(flow)

    def targets(self) -> list[str]:
        """The tables that flows append to, in the order of the flows."""
        return list(dict.fromkeys(flow.target for flow in self.flows))

    def chosen(self, name: str | None) -> list[Flow]:
        """The flows that `name` selects: a flow's name, a table's, or None for all. SpecError when there is none."""
        if name is None:
            return list(self.flows)
        flows = [flow for flow in self.flows if flow.name == name] or [
            flow for flow in self.flows if flow.target == name
        ]
        if not flows:
            names = [*(flow.name for flow in self.flows), *self.targets()]
            message = f"--full-refresh {name}: {self.source} has no flow and no table of that name."
            raise SpecError(f"{message}{suggestion(name, names)}", hint=f"There are: {', '.join(names)}.")
        return flows
