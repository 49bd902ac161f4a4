"""A run of a task or job as a value: its request, its record and its states.

QUEUED -> RUNNING -> DONE | NOTHING (there was nothing to do) | FAILED
          |-> QUEUED again, when the server's process crashed: its successor resumes the run
          |-> INTERRUPTED, when a process of the command line crashed
          |-> DRY_RUN, when it was to change nothing: it is listed, and is no run of the table
          `-> REJECTED, when the request was wrong: who asked gets the error, and it is not listed
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from hybrid.errors import NotFoundError, QueryError, RightError, SpecError, UsageError
from hybrid.runtime.sentence_repr import shown_as

INCOMPLETE = ("QUEUED", "RUNNING")
DRY_RUN, REJECTED = "DRY_RUN", "REJECTED"
# What no person asks for: there a missing file or a wrong definition is a failure of the work.
_OF_ITSELF, _INGEST = frozenset({"connector", "flow"}), "ingest"
# Pinot's codes of statements that are wrong: parse, unknown table, validation, unknown column.
_WRONG_STATEMENTS = frozenset({150, 190, 700, 710})
# The arguments that are kept once a run has ended. Documents, specs, statements and conditions may hold secrets.
_KEPT_ARGUMENTS = frozenset(
    {"table", "type", "name", "flow", "kind", "entry", "backfill", "erasure", "max_buckets", "dry_run"}
)
_PAUSE_S = (0.0, 1.0, 10.0)  # before each attempt, counted from the start of the previous one


@dataclass(frozen=True)
class RunRequest:
    """Work for a server: `verb` of the API with `arguments` (JSON values).

    `only_one`: at most one incomplete run of this type per table. `source` is who requested it: cli, http, schedule.
    `queued_version` is the version of the half that the run will commit to.
    """

    id: str
    table_name: str
    type: str
    verb: str
    arguments: Mapping[str, Any] = field(repr=False)
    source: str
    only_one: bool = False
    queued_version: int | None = None

    @property
    def is_dry(self) -> bool:
        """Whether it is to change nothing."""
        return self.arguments.get("dry_run") is True


@shown_as("{0.id}: {0.type}, {0.state}")
@dataclass(frozen=True)
class RunRecord:
    """One run. `result` is its sentence, `progress` its last message, `report` the result of its verb.

    `error` is `{"error", "kind", "hint"}` of a failed run. `verb` is None for a run of a command's own process.
    """

    id: str
    table_name: str
    type: str
    state: str
    created_at: str
    started_at: str | None = None
    finished_at: str | None = None
    result: str | None = None
    verb: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict, repr=False)
    source: str | None = None
    attempts: int = 1
    progress: str | None = None
    report: Any = None
    error: Mapping[str, Any] | None = None
    queued_version: int | None = None
    dry_run: bool = False

    @property
    def incomplete(self) -> bool:
        """Whether it is queued or running."""
        return self.state in INCOMPLETE


@dataclass
class RunOutcome:
    """The outcome of a run: DONE or NOTHING, and the sentence."""

    state: str = "DONE"
    sentence: str = ""

    def ended(self, sentence: str, *, did_something: bool) -> None:
        """Set the sentence, and the state by whether something was done."""
        self.sentence = sentence
        self.state = "DONE" if did_something else "NOTHING"


def failed_state(error: Exception, kind: str, *, is_scheduled: bool = False) -> str:
    """The state of a run of this type that ends with this error: FAILED, or REJECTED for a request that was wrong.

    A schedule asks for what the definition says, so its runs are never wrong requests.
    """
    is_wrong = isinstance(error, UsageError)
    if kind not in _OF_ITSELF:
        is_wrong |= isinstance(error, SpecError | RightError)
        is_wrong |= isinstance(error, NotFoundError) and kind != _INGEST  # it is a topic then
        is_wrong |= isinstance(error, QueryError) and error.pinot_code in _WRONG_STATEMENTS
    return REJECTED if is_wrong and not is_scheduled else "FAILED"


def public_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a run that anybody may see and that are kept: names and numbers, no submitted content."""
    shown = {name: value for name, value in arguments.items() if name in _KEPT_ARGUMENTS}
    return {name: value for name, value in shown.items() if not isinstance(value, (dict, list))}


def rests(run: RunRecord) -> bool:
    """Whether a run whose process crashed has to wait before its next attempt.

    A clock that was set back does not delay it.
    """
    if not run.attempts or run.started_at is None:
        return False
    pause_s = _PAUSE_S[min(run.attempts, len(_PAUSE_S) - 1)]
    age_s = (datetime.now(UTC) - datetime.fromisoformat(run.started_at)).total_seconds()
    return 0 <= age_s < pause_s
