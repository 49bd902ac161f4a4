"""Pinot's spans of time after which keys are forgotten, in the unit of the column that they are measured by."""

from __future__ import annotations

from math import isfinite

from hybrid.schema.document import Section, shown

METADATA_TTL = "metadataTTL"


def read_ttl(section: Section, key: str) -> float:
    """The span as Pinot writes it, a number that is not negative; 0 where there is none."""
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
    """What a metadataTTL is told."""
    return (
        f"{section.source}: {section.at(METADATA_TTL)}: it has no effect: keys take no memory here, so that none is "
        f"forgotten, and {what}, however late it comes."
    )
