"""Checks of a table's connectors: which failed, with its error, and which wait for one that did."""

from __future__ import annotations

from hybrid.doctor.findings import Checkup, Severity


def check_connectors(checkup: Checkup, name: str) -> None:
    """The connectors of one table. One that a user paused is as it is wanted."""
    connectors = checkup.home.table(name).connectors.look(ask_kafka=False)
    failed = [one for one in connectors if one.state == "FAILED"]
    for one in failed:
        error = one.latest_error or ""
        if any(error in known.message for known in checkup.findings if known.table == name):
            continue  # the check of the stream found the same
        message = f"Connector '{one.name}' failed: {error}"
        hint = f"Correct what it names, then: hybrid connector start {name} {one.name}"
        checkup.found(Severity.ERROR, "connector", message, table=name, hint=hint)
    names = {one.name for one in failed}
    for one in connectors:
        held_by = sorted(names.intersection(one.waits_for))
        if one.state == "WAITING" and held_by:
            also = " Nothing is read of Kafka until then." if one.transport == "kafka_input" else ""
            message = f"Connector '{one.name}' waits for '{held_by[0]}', which failed.{also}"
            checkup.found(Severity.NOTE, "connector", message, table=name)
