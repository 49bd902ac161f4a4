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
    certificate, is_new = home.erasures.take_up(tables, options)
    return {**views.erasure_view(home.erasures, certificate), "is_new": is_new}


@flat(options=ErasureOptions)
def erase_run(
    home: Hybrid, *, erasure: str, options: ErasureOptions, dry_run: bool = False, give_back: bool = False
) -> Json:
    """Runs an erasure or goes on with it, with these options too; a dry run says what it would find.

    `give_back`: the erasure was begun for this dry run alone, which removes it at its end.
    """
    if dry_run:
        try:
            return views.erasure_readings(erasure, home.erasures.look(erasure, options))
        finally:
            if give_back:
                home.erasures.give_back(erasure)
    return views.erasure_view(home.erasures, home.erasures.run(erasure, options))


def erasures(home: Hybrid) -> Json:
    """The certificates of all erasures, newest first."""
    return [views.erasure_view(home.erasures, found) for found in home.erasures.all()]


def erasure(home: Hybrid, *, erasure: str) -> Json:
    """The certificate of an erasure."""
    return views.erasure_view(home.erasures, home.erasures.show(erasure))


def erase_discard(home: Hybrid, *, erasure: str, unused: bool = False) -> Json:
    """Ends an open erasure and removes its conditions; with `unused` only one that nobody else has taken up."""
    ended = home.erasures.give_back(erasure) if unused else home.erasures.discard(erasure)
    return views.erasure_view(home.erasures, ended)
