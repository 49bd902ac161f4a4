"""The verbs of erasures, of `hybrid.rpc.verbs`. Begin is light, so that no condition is in the queue; run is heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hybrid.operations.erasure import ErasureOptions
from hybrid.rpc import json_views as views
from hybrid.rpc.flat_arguments import flat

if TYPE_CHECKING:
    from hybrid.api.hybrid import Hybrid

Json = Any


@flat(options=ErasureOptions)
def erase_begin(home: Hybrid, *, tables: dict[str, str], options: ErasureOptions) -> Json:
    """Begins an erasure by conditions of tables, or returns the open one (not `is_new`). Nothing is removed."""
    is_new = not home.erasures.is_open(tables)
    return {**views.erasure_view(home.erasures, home.erasures.begin(tables, options)), "is_new": is_new}


def erase_run(home: Hybrid, *, erasure: str, dry_run: bool = False) -> Json:
    """Runs an erasure or goes on with it; a dry run says what it would find."""
    if dry_run:
        return views.erasure_readings(erasure, home.erasures.look(erasure))
    return views.erasure_view(home.erasures, home.erasures.run(erasure))


def erasures(home: Hybrid) -> Json:
    """The certificates of all erasures, newest first."""
    return [views.erasure_view(home.erasures, found) for found in home.erasures.all()]


def erasure(home: Hybrid, *, erasure: str) -> Json:
    """The certificate of an erasure."""
    return views.erasure_view(home.erasures, home.erasures.show(erasure))


def erase_discard(home: Hybrid, *, erasure: str) -> Json:
    """Ends an open erasure and removes its conditions."""
    return views.erasure_view(home.erasures, home.erasures.discard(erasure))
