"""Reverts replacements that were started and never ended, once they are older than the setting allows."""

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
    """Reverts every replacement that is IN_PROGRESS for longer than the setting allows. Returns a sentence for each."""
    days = home.settings.replacement_days_max
    sentences: list[str] = []
    for name in home.table_names() if days > 0 else ():
        try:
            replacing = Replacing(home, home.table(name))
            for pending in replacing.in_progress():
                if home.now_ms() - epoch_ms(pending.entry.created_at) > days * _DAY_MS:
                    sentences.append(replacing.throw_away(pending.entry.id).sentence)
        except (HybridError, OSError) as error:  # one table's error must not keep the others from their check
            _LOG.warning("Replacements of '%s' cannot be taken back: %s", name, error)
    for sentence in sentences:
        _LOG.warning("%s It was older than %d days.", sentence, days)
    return sentences
