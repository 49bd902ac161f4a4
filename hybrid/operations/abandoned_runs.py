"""Takes back replacements that somebody started and never ended, after the age in the settings."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from hybrid.errors import HybridError
from hybrid.operations.segment_replacement import Replacing
from hybrid.runtime.json_values import epoch_ms

if TYPE_CHECKING:
    from hybrid.home.home import Home

_LOG = logging.getLogger(__name__)
_DAY_MS = 86_400_000


def take_back_abandoned(home: Home) -> list[str]:
    """Takes back each replacement that is IN_PROGRESS for longer than the setting says; a sentence for each."""
    days = home.settings.replacement_days_max
    said: list[str] = []
    for name in home.table_names() if days > 0 else ():
        try:
            replacing = Replacing(home, home.table(name))
            for one in replacing.in_progress():
                if home.now_ms() - epoch_ms(one.entry.created_at) > days * _DAY_MS:
                    said.append(replacing.throw_away(one.entry.id).sentence)
        except HybridError as error:  # the other tables are looked at all the same
            _LOG.warning("Replacements of '%s' cannot be taken back: %s", name, error)
    for sentence in said:
        _LOG.warning("%s It was older than %d days.", sentence, days)
    return said
