"""The context of a flow file in a run: the declaration that it fills, its variables, Spark on first use.

While a flow's function runs, `bound()` provides its files. Both belong to the thread that runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from hybrid.errors import SpecError, UsageError, meant, suggestion
from hybrid.flow.declared.inference import InferredColumns
from hybrid.flow.declared.model import Declaration
from hybrid.flow.declared.options import DeclaredFileSource
from hybrid.runtime.sentence_repr import shown_as

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Binding(Protocol):
    """Provides the frames of a flow's sources in this run."""

    def read(self, source: DeclaredFileSource) -> DataFrame:
        """The rows of all files of a batch source, or of the new files of a streaming one."""


@shown_as("{0.declaration.source}")
@dataclass
class FlowSession:
    """One run of a flow file. `used` are the variables that the file has read, `inferred` the columns of its files."""

    declaration: Declaration
    variables: Mapping[str, str]
    start_spark: Callable[[], SparkSession]
    used: set[str] = field(default_factory=set)
    inferred: InferredColumns = field(default_factory=InferredColumns)

    def variable(self, name: str) -> str | None:
        """A --var by its name, or None; it counts as used."""
        self.used.add(name)
        return self.variables.get(name)

    def unused(self, text: str = "") -> list[str]:
        """One warning for each --var that nothing has read.

        A flow's function reads variables only when it runs, so a name in quotes in the file's `text` counts as used.
        """
        return [
            f"--var {name}: {self.declaration.source} does not use it.{suggestion(name, self.used)}"
            for name in self.variables
            if name not in self.used and f'"{name}"' not in text and f"'{name}'" not in text
        ]


_SESSION: ContextVar[FlowSession | None] = ContextVar("hybrid_flow_session", default=None)
_BINDING: ContextVar[Binding | None] = ContextVar("hybrid_flow_binding", default=None)


@contextmanager
def in_session(session: FlowSession, binding: Binding | None = None) -> Iterator[None]:
    """Sets `session` for the calling thread within the block; with `binding`, a flow's function runs."""
    token, bound_token = _SESSION.set(session), _BINDING.set(binding)
    try:
        yield
    finally:
        _BINDING.reset(bound_token)
        _SESSION.reset(token)


def in_flow_file() -> bool:
    """Whether this thread runs a flow file."""
    return _SESSION.get() is not None


def current(what: str) -> FlowSession:
    """The session of this thread. UsageError without one; `what` names the call."""
    session = _SESSION.get()
    if session is None:
        raise UsageError(f"{what} is for flow files, and no flow file runs.", hint="hybrid flow run FILE")
    return session


def bound(what: str) -> Binding:
    """The binding of the running flow. SpecError outside of a flow's function; `what` names the call."""
    session, binding = current(what), _BINDING.get()
    if binding is None:
        raise SpecError(
            f"{session.declaration.source}: {what} stands outside of a flow. Files are read inside of a flow's "
            "function, which is called again for each run and each micro-batch.",
            hint="Put it into the function under @append_flow.",
        )
    return binding


def variable(name: str, default: str | None, spelling: str) -> str:
    """The value of a --var or the default; SpecError, with a suggestion, without either."""
    session = current(spelling)
    value = session.variable(name)
    if value is None:
        value = default
    if value is None:
        near = meant(name, session.variables)
        message = f"{session.declaration.source}: {spelling}('{name}'): no --var of that name was given.{near}"
        raise SpecError(message, hint=f"hybrid flow run FILE --var {name}=VALUE")
    return value
