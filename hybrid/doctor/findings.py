"""The findings of a check-up, and their repairs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from hybrid.errors import HybridError
from hybrid.jvm.spark_errors import short_words

if TYPE_CHECKING:
    from hybrid.api.hybrid import Hybrid

_LOG = logging.getLogger(__name__)


class Severity(StrEnum):
    """`ERROR`: something fails or is lost. `WARNING`: something will fail, or takes space. `NOTE`: for information."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """What one check found in a table (None: in the home). `hint` says what to do, `repair` what was done."""

    check: str
    table: str | None
    severity: Severity
    message: str
    hint: str | None = None
    repair: str | None = None

    @property
    def is_left(self) -> bool:
        """Whether the finding still needs attention."""
        return self.severity is not Severity.NOTE and self.repair is None


class Checkup:
    """Collects the findings in a home. With `repair`, runs the repairs that findings bring."""

    def __init__(self, home: Hybrid, *, repair: bool) -> None:
        self.home = home
        self.findings: list[Finding] = []
        self._repair = repair

    def found(
        self,
        severity: Severity,
        check: str,
        message: str,
        *,
        table: str | None = None,
        hint: str | None = None,
        mend: Callable[[], str] | None = None,
    ) -> bool:
        """Adds a finding; `mend` repairs it and returns what it did. Returns whether the finding is repaired."""
        finding = Finding(check, table, severity, message, hint)
        if mend is not None and self._repair:
            finding = _mended(finding, mend)
        elif mend is not None:
            finding = replace(finding, hint="hybrid doctor --repair")
        self.findings.append(finding)
        return finding.repair is not None

    def age_ms(self, since: str) -> float:
        """The age in ms of an ISO 8601 time, by the home's clock."""
        return self.home.context.now_ms() - datetime.fromisoformat(since).timestamp() * 1000

    @contextmanager
    def surviving(self, check: str, table: str | None = None) -> Iterator[None]:
        """Turns any exception of a check into a finding, so that the other checks still run."""
        try:
            yield
        except Exception as error:
            _LOG.exception("The check '%s' of table %s ended early", check, table)
            reason = (
                short_words(error)
                if isinstance(error, HybridError | OSError)
                else f"{type(error).__name__}: {short_words(error)}"
            )
            hint = error.hint if isinstance(error, HybridError) else "hybrid logs --level error (the traceback)"
            self.found(Severity.ERROR, check, f"This could not be checked: {reason}", table=table, hint=hint)


def now_words() -> str:
    """The current UTC time to the second, as a part of a file name."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")


def _mended(finding: Finding, mend: Callable[[], str]) -> Finding:
    try:
        return replace(finding, repair=mend())
    except (HybridError, OSError) as error:
        return replace(finding, hint=f"It could not be repaired: {error}")
