"""Reads Pinot's TTLs of keys, in the unit of the column that they are measured by."""

from __future__ import annotations

from math import isfinite

from hybrid.schema.document import Section, shown

METADATA_TTL = "metadataTTL"


def read_ttl(section: Section, key: str) -> float:
    """The TTL at `key`, as Pinot writes it: a number from 0 on; 0 where it is missing. SpecError for anything else."""
    value = section.doc.get(key)
    if value is None:
        return 0
    try:
        number = float("nan") if isinstance(value, bool) else float(str(value))
    except ValueError:
        number = float("nan")
    if not isfinite(number) or number < 0:
        section.fail(key, f"{shown(value)} is not a number from 0 on.")
    return number


def metadata_warning(section: Section, what: str) -> str:
    """The warning that a metadataTTL has no effect; `what` says how late rows are treated instead."""
    return (
        f"{section.source}: {section.at(METADATA_TTL)}: it has no effect: keys take no memory here, so that none is "
        f"forgotten, and {what}, however late it arrives."
    )
