"""Checks of a table's stream: Kafka answers, topics were not recreated, and they still hold the next offsets."""

from __future__ import annotations

from hybrid.config.table_config import TableSpec
from hybrid.doctor.findings import Checkup, Severity
from hybrid.errors import HybridError, NotFoundError, StreamError, TopicError
from hybrid.ingest.plan import plan_batch
from hybrid.kafka.clients import CHECK_TIMEOUT_MS
from hybrid.kafka.streams import SilentBrokers, absent_words
from hybrid.runtime.json_values import capitalized
from hybrid.table.state import RealtimeState

_NO_BOUND = 2**62


class StreamChecks:
    """Checks streams. Brokers that did not answer for one table are not asked again for the next."""

    def __init__(self, checkup: Checkup) -> None:
        self._checkup = checkup
        self._brokers = SilentBrokers(CHECK_TIMEOUT_MS)

    def check(self, spec: TableSpec, state: RealtimeState) -> None:
        """Checks the stream of one table, and reports its rejected messages."""
        if state.rejected:
            count = "1 message" if state.rejected == 1 else f"{state.rejected} messages"
            message = f"{count} could not be read so far; they are kept with their reasons."
            hint = f"hybrid rejected list {spec.name}"
            self._checkup.found(Severity.NOTE, "rejected", message, table=spec.name, hint=hint)
        if spec.stream is None or not state.reads(spec.stream):
            return
        try:
            view = self._brokers.view(spec.stream, state)
        except (StreamError, NotFoundError) as error:
            self._found(Severity.ERROR if isinstance(error, TopicError) else Severity.WARNING, spec, error)
            return
        try:
            plan_batch(spec.name, spec.stream, state, view, _NO_BOUND)
        except StreamError as error:
            self._found(Severity.ERROR, spec, error)
        absent = absent_words(spec.stream, view.topic_ids)
        if absent is not None:
            hint = "Check its name, which cannot be changed. It is read when it comes: hybrid kafka topic create"
            message = f"{capitalized(absent)}; the others are read."
            self._checkup.found(Severity.WARNING, "stream", message, table=spec.name, hint=hint)

    def _found(self, severity: Severity, spec: TableSpec, error: HybridError) -> None:
        self._checkup.found(severity, "stream", str(error), table=spec.name, hint=error.hint)
