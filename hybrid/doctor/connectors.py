"""Checks of a table's connectors: failed ones with their error, and connectors that wait for a failed one."""

from __future__ import annotations

from hybrid.doctor.findings import Checkup, Severity


def check_connectors(checkup: Checkup, name: str) -> None:
    """Checks the connectors of one table. A connector that a user paused is no finding."""
    connectors = checkup.home.table(name).connectors.look(ask_kafka=False)
    failed = [connector for connector in connectors if connector.state == "FAILED"]
    for connector in failed:
        error = connector.latest_error or ""
        if any(error in finding.message for finding in checkup.findings if finding.table == name):
            continue  # the check of the stream has reported it
        hint = f"Correct what it names, then: hybrid connector start {name} {connector.name}"
        checkup.found(Severity.ERROR, "connector", connector.failure, table=name, hint=hint)
    names = {connector.name for connector in failed}
    for connector in connectors:
        failed_dependencies = sorted(names.intersection(connector.waits_for))
        if connector.state == "WAITING" and failed_dependencies:
            also = " Nothing is read of Kafka until then." if connector.transport == "kafka_input" else ""
            waits = f"Connector '{connector.name}' waits for '{failed_dependencies[0]}', which failed.{also}"
            checkup.found(Severity.NOTE, "connector", waits, table=name)
