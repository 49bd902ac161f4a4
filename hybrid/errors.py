"""The product's error tree.

    HybridError                 code, exit_code, http_status, pinot_code, hint
    |-- UsageError              wrong words on the command line                        exit 2
    |-- SpecError               a schema, table config, job spec or setting is wrong   exit 1
    |-- NotFoundError           a table, segment, replacement, file does not exist     exit 1
    |-- ConflictError           another operation uses, or has changed, the same thing exit 4
    |   `-- OvertakenError      the state an operation was planned on is outdated      (retried, then exit 4)
    |-- StreamError             Kafka: unreachable, offsets expired                    exit 1
    |   `-- TopicError          ... answers, and a topic is gone or refused            exit 1
    |-- DataError               a row, file or batch cannot be read or converted       exit 1
    |-- AccessError             a server cannot authenticate the caller                exit 1
    |   `-- RightError          ... or can, and the caller lacks the right             exit 1
    |-- QueryError              a statement cannot be parsed, planned or run           exit 1
    `-- MachineError            Java, jars, disk: the machine lacks something          exit 1

A message says what happened, with the value, and the remedy; `hint` is the next command.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_SUGGESTED = re.compile(r"(Did you mean '[^'\n]*'\?)\.")


class HybridError(Exception):
    """An error that a user can act on. `str()` is the sentence; `hint` says what to do next."""

    code = "error"
    exit_code = 1
    http_status = 500
    pinot_code = 200

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(_SUGGESTED.sub(r"\1", message))  # a sentence that ends in a suggestion is complete
        self.hint = hint


class UsageError(HybridError):
    """Wrong words on the command line."""

    code = "usage"
    exit_code = 2
    http_status = 400


class SpecError(HybridError):
    """A schema, table config, job spec or settings file that cannot be honoured."""

    code = "spec"
    http_status = 400

    @classmethod
    def at(cls, source: str, path: str, message: str, *, hint: str | None = None) -> SpecError:
        """An error at a JSON pointer or key `path` inside the file `source`."""
        return cls(f"{source}: {path}: {message}", hint=hint)


class NotFoundError(HybridError):
    """A named thing does not exist."""

    code = "not-found"
    http_status = 404
    pinot_code = 190

    @classmethod
    def named(cls, noun: str, name: str, known: Iterable[str] = ()) -> NotFoundError:
        """`Table 'evnts' does not exist. Did you mean 'events'?`"""
        return cls(f"{noun} '{name}' does not exist.{suggestion(name, known)}")


class ConflictError(HybridError):
    """Another operation uses, or has changed, the same thing; nothing was changed."""

    code = "conflict"
    exit_code = 4
    http_status = 409


class OvertakenError(ConflictError):
    """The state that an operation was planned on is no longer the newest: plan it again."""

    code = "overtaken"


class StreamError(HybridError):
    """Kafka cannot be reached, or a topic has changed; nothing was skipped."""

    code = "stream"
    http_status = 502


class RegistryError(StreamError):
    """The schema registry does not answer, or refuses the credentials; nothing was read or skipped."""

    code = "registry"


class TopicError(StreamError):
    """Kafka answers, but a topic that was read is gone, or Kafka refuses access to it."""

    code = "topic"


class DataError(HybridError):
    """A row, file or batch cannot be read or converted; nothing was changed."""

    code = "data"
    http_status = 400


class AccessError(HybridError):
    """A server cannot authenticate the caller: without an account, or with a wrong secret."""

    code = "access"
    http_status = 401


class BusyError(HybridError):
    """The server's queue is full; the request may succeed later."""

    code = "busy"
    http_status = 429


class RightError(AccessError):
    """The caller's account lacks the required right."""

    code = "right"
    http_status = 403


class QueryError(HybridError):
    """A statement cannot be parsed, planned or run. `pinot_code` is Pinot's error code for it.

    `column` is the name of a column that does not exist, if that is the error.
    """

    code = "query"
    http_status = 200

    def __init__(
        self, message: str, *, pinot_code: int = 200, hint: str | None = None, column: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.pinot_code, self.column = pinot_code, column


class MachineError(HybridError):
    """The machine lacks something: Java, the jars, or disk space."""

    code = "machine"


def suggestion(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """` Did you mean 'events'?` when a known name is close to `name`, else an empty string."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f" Did you mean '{close[0]}'?" if close else ""


def known_kinds() -> dict[str, type[HybridError]]:
    """The tree's classes by their `code`, for raising errors again that arrived over a wire."""
    kinds: dict[str, type[HybridError]] = {}
    waiting = [HybridError]
    for kind in waiting:
        kinds[kind.code] = kind
        waiting.extend(kind.__subclasses__())
    return kinds


def error_document(error: HybridError) -> dict[str, object]:
    """An error as a JSON document."""
    return {"error": str(error), "kind": error.code, "hint": error.hint, "pinot_code": error.pinot_code}
