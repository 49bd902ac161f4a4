"""The product's error tree.

    HybridError                 code, exit_code, http_status, pinot_code, hint
    |-- UsageError              wrong words on the command line                        exit 2
    |-- SpecError               a schema, table config, job spec or setting is wrong   exit 1
    |-- NotFoundError           a table, segment, replacement, file does not exist     exit 1
    |-- ConflictError           another operation uses, or has changed, the same thing exit 4
    |   `-- OvertakenError      the state an operation was planned on is outdated      (retried, then exit 4)
    |-- StreamError             Kafka: unreachable, offsets expired                    exit 1
    |   `-- TopicError          ... answers, and a topic is gone or refused            exit 1
    |-- StoreError              an object store: unreachable, or refuses a request      exit 1
    |-- DataError               a row, file or batch cannot be read or converted       exit 1
    |-- AccessError             a server cannot authenticate the caller                exit 1
    |   `-- RightError          ... or can, and the caller lacks the right             exit 1
    |-- QueryError              a statement cannot be parsed, planned or run           exit 1
    `-- MachineError            Java, jars, disk: the machine lacks something          exit 1

A message says what happened, with the value, and the remedy; `hint` is the next command. A document with several
mistakes is one error whose `others` are the further ones: `Gathered` collects them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

# Pinot's codes of query errors, as `pinot_code`.
PARSE_ERROR, NO_SUCH_TABLE, EXECUTION, TIMEOUT, CANCELLED = 150, 190, 200, 250, 503
VALIDATION, NO_SUCH_COLUMN = 700, 710
# As many errors of one document are shown at once.
ERRORS_MAX = 20
_SUGGESTED = re.compile(r"(Did you mean '[^'\n]*'\?)\.")


class HybridError(Exception):
    """An error that a user can act on. `str()` is the sentence; `hint` says what to do next.

    `others` are further errors of the same document or files, at most `ERRORS_MAX` together with this one.
    """

    code = "error"
    exit_code = 1
    http_status = 500
    pinot_code = EXECUTION

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(_SUGGESTED.sub(r"\1", message))  # a sentence that ends in a suggestion is complete
        self.hint = hint
        self.others: tuple[HybridError, ...] = ()
        self._note()

    def carry(self, others: Iterable[HybridError]) -> HybridError:
        """Takes up further errors, which Python's tracebacks show below this one."""
        self.others = tuple(others)
        self._note()
        return self

    def _note(self) -> None:
        """Give Python's tracebacks, also those of notebooks, what they show below the message."""
        self.__notes__ = [*([f"hint: {self.hint}"] if self.hint else []), *map(str, self.others)]

    def all(self) -> list[HybridError]:
        """This error and the others, in the order of the document."""
        return [self, *self.others]

    @property
    def words(self) -> str:
        """The sentences of this error and of the others, for a place that keeps one text."""
        return " ".join(dict.fromkeys(map(str, self.all())))


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
    pinot_code = NO_SUCH_TABLE

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


class StoreError(HybridError):
    """An object store cannot be reached, or refuses a request. `fault` is the kind, one of `hybrid.store`'s."""

    code = "store"
    http_status = 502

    def __init__(self, message: str, *, hint: str | None = None, fault: str = "other") -> None:
        super().__init__(message, hint=hint)
        self.fault = fault


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
    pinot_code = 429


class RightError(AccessError):
    """The caller's account lacks the required right."""

    code = "right"
    http_status = 403


class QueryError(HybridError):
    """A statement cannot be parsed, planned or run. `pinot_code` is Pinot's error code for it.

    `column` is the name of a column that does not exist, if that is the error. `place` is a column or a text of the
    statement that the error is about, which names where it stands.
    """

    code = "query"
    http_status = 200

    def __init__(
        self,
        message: str,
        *,
        pinot_code: int = EXECUTION,
        hint: str | None = None,
        column: str | None = None,
        place: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.pinot_code, self.column, self.place = pinot_code, column, place


class MachineError(HybridError):
    """The machine lacks something: Java, the jars, or disk space."""

    code = "machine"


def suggestion(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """` Did you mean 'events'?` when a known name is close to `name`, else an empty string."""
    close = _closest(name, known, cutoff)
    return f" Did you mean '{close}'?" if close is not None else ""


def meant(name: str, given: Iterable[str], cutoff: float = 0.6) -> str:
    """` Is 'evnts' meant?` when a given name is close to `name`, which is missing, else an empty string."""
    close = _closest(name, given, cutoff)
    return f" Is '{close}' meant?" if close is not None else ""


def _closest(name: str, names: Iterable[str], cutoff: float) -> str | None:
    return next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=cutoff)), None)


def known_kinds() -> dict[str, type[HybridError]]:
    """The tree's classes by their `code`, for raising errors again that arrived over a wire."""
    kinds: dict[str, type[HybridError]] = {}
    waiting = [HybridError]
    for kind in waiting:
        kinds[kind.code] = kind
        waiting.extend(kind.__subclasses__())
    return kinds


class Gathered:
    """Collects the errors of parts of a document that do not depend on one another, to raise them together.

    Each part is a `with` block. Its SpecError or DataError is kept, and the code behind the block continues.
    """

    def __init__(self) -> None:
        self._errors: list[HybridError] = []

    def __len__(self) -> int:
        return len(self._errors)

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        if not isinstance(error, SpecError | DataError):
            return False
        self.add(error)
        return True

    def add(self, error: HybridError) -> None:
        """Keeps an error, and those that it carries. When `ERRORS_MAX` are kept they are raised at once."""
        known = {str(kept) for kept in self._errors}
        self._errors += [found for found in error.all() if str(found) not in known]
        if len(self._errors) >= ERRORS_MAX:
            self.raise_all()

    def read_further(self, readers: Iterable[Callable[[], object]]) -> None:
        """Keeps the errors of further readers of a document that has an error already.

        What that mistake has left may be of any shape, so that a reader may also fail by itself, which is no error.
        """
        for read in readers:
            with suppress(LookupError, TypeError, ValueError), self:
                read()

    def raise_all(self) -> None:
        """Raises the first error, which carries the others. Does nothing without any."""
        if not self._errors:
            return
        first, *others = self._errors[:ERRORS_MAX]
        raise first.carry(others)


def error_document(error: HybridError) -> dict[str, object]:
    """An error as a JSON document. `errors` has all errors where there are several, the first one included."""
    document: dict[str, object] = {"error": str(error), "kind": error.code, "hint": error.hint}
    document["pinot_code"] = error.pinot_code
    if error.others:
        document["errors"] = [{"error": str(found), "hint": found.hint} for found in error.all()]
    return document


def with_others(error: HybridError, document: Mapping[str, object]) -> HybridError:
    """The error of a document, with the further errors that the document lists."""
    listed = document.get("errors")
    found = [item for item in listed[1:ERRORS_MAX] if isinstance(item, dict)] if isinstance(listed, list) else []
    return error.carry(type(error)(str(item.get("error")), hint=item.get("hint")) for item in found)
