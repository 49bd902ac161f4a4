"""Acts that outlive the log of their half: replacements and reverts, and what wrote the table's definition down.

<warehouse>/<table>/OFFLINE.acts, REALTIME.acts    a JSON object a line, oldest first: Delta table's id, version, act

They are copied here before the log is cleaned past them: what backfills have corrected, whose rows a replaced segment
stands for, and from what a damaged definition is written anew hang on them for longer than rows can be reverted. They
are copies of what was committed and has ended, so they say nothing that the log could say otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from hybrid.runtime import durable
from hybrid.runtime.json_values import without_samples
from hybrid.table.state import Act

VersionedAct = tuple[int, Act]


def outlives_log(act: Act) -> bool:
    """Whether an act is looked for when its entry has left the log: a lineage entry, or one that has the documents."""
    return "previous" in act.detail or isinstance(act.detail.get("schema"), dict)


def keep_acts(half: Path, table_id: str, acts: Iterable[VersionedAct]) -> None:
    """Adds acts to those that are kept, for good before it returns; of one that is there already nothing changes.

    Rows that results of expectations show as samples are not kept: they may have to be forgotten. Call it under the
    half's lock.
    """
    known = {version: act for version, act in kept_acts(half, table_id)}
    fresh = {version: act for version, act in acts if version not in known}
    if not fresh:
        return
    lines = []
    for version, act in sorted({**fresh, **known}.items()):
        document = {"table_id": table_id, "version": version, "act": without_samples(vars(act))}
        lines.append(json.dumps(document, separators=(",", ":"), default=dict))
    durable.write_text(_file(half), "\n".join(lines))


def kept_acts(half: Path, table_id: str | None = None) -> list[VersionedAct]:
    """The (version, act) that are kept of the Delta table with that id, newest first; None: of any that lay there."""
    try:
        text = _file(half).read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    found = [json.loads(line) for line in text.split("\n") if line]  # JSON may hold other line ends as they are
    mine = [one for one in found if table_id is None or one["table_id"] == table_id]
    return [(int(one["version"]), Act(**one["act"])) for one in reversed(mine)]


def _file(half: Path) -> Path:
    return half.with_name(f"{half.name}.acts")
