"""What a flow file sees of the run that it is a part of: the declaration it fills, its variables, Spark on first use.

While a flow's function runs, `bound()` is what gives it its files. Both are of the thread that runs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from hybrid.errors import SpecError, UsageError, suggestion
from hybrid.flow.declared.model import Declaration
from hybrid.flow.declared.options import DeclaredFileSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Binding(Protocol):
    """Gives a flow's function the frames that its sources stand for in this run."""

    def read(self, source: DeclaredFileSource) -> DataFrame:
        """The rows of all files of a batch source, or of the new files of a streaming one."""


@dataclass
class FlowSession:
    """One run of a flow file. `used` are the variables that the file has asked for."""

    declaration: Declaration
    variables: Mapping[str, str]
    start_spark: Callable[[], SparkSession]
    used: set[str] = field(default_factory=set)

    def variable(self, name: str) -> str | None:
        """A --var by its name, or None; it counts as used."""
        self.used.add(name)
        return self.variables.get(name)

    def unused(self, text: str = "") -> list[str]:
        """One warning for each --var that nothing has asked for.

        A flow's function asks only when it runs: a name that stands in quotes in the file's `text` counts as used.
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
    """The calling thread works for `session` meanwhile; with `binding`, on the function of a flow."""
    token, bound_token = _SESSION.set(session), _BINDING.set(binding)
    try:
        yield
    finally:
        _BINDING.reset(bound_token)
        _SESSION.reset(token)


def in_flow_file() -> bool:
    """Whether this thread works for a flow file."""
    return _SESSION.get() is not None


def current(what: str) -> FlowSession:
    """The session of this thread; UsageError outside of one: `what` was asked for."""
    session = _SESSION.get()
    if session is None:
        raise UsageError(f"{what} is for flow files, and no flow file runs.", hint="hybrid flow run FILE")
    return session


def bound(what: str) -> Binding:
    """What gives the running flow its files. SpecError outside of a flow's function: `what` was asked for."""
    session, binding = current(what), _BINDING.get()
    if binding is None:
        raise SpecError(
            f"{session.declaration.source}: {what} stands outside of a flow. Files are read inside of a flow's "
            "function, which is called anew for each run and each micro-batch.",
            hint="Put it into the function under @append_flow.",
        )
    return binding


def variable(name: str, default: str | None, spelling: str) -> str:
    """The value of a --var; SpecError, with a suggestion, when there is neither it nor a default."""
    session = current(spelling)
    value = session.variable(name)
    if value is None:
        value = default
    if value is None:
        near = suggestion(name, session.variables)
        message = f"{session.declaration.source}: {spelling}('{name}'): no --var of that name was given.{near}"
        raise SpecError(message, hint=f"Add --var {name}=VALUE.")
    return value
