"""The right that each request needs. Unlisted routes need the highest: a new route is closed by default."""

from __future__ import annotations

import re
from collections.abc import Mapping

from starlette.routing import compile_path

from hybrid.home.accounts import Right

READ, OPERATE, ADMIN = Right.READ, Right.OPERATE, Right.ADMIN

# Open to everybody: load balancers and Pinot's clients request these first.
OPEN_PATHS = frozenset({"/livez", "/readyz", "/health", "/version"})

# GET and HEAD read; the other methods, by their paths as the application names them:
PATH_RIGHTS: Mapping[str, Right] = {
    "POST /query/sql": READ,
    "POST /query": READ,
    "POST /sql": READ,
    "DELETE /query/{request_id}": READ,
    "POST /schemas": ADMIN,
    "PUT /schemas/{schema}": ADMIN,
    "DELETE /schemas/{schema}": ADMIN,
    "POST /schemas/validate": READ,
    "POST /tables": ADMIN,
    "POST /tables/validate": READ,
    "POST /tableConfigs": ADMIN,
    "POST /tableConfigs/validate": READ,
    "PUT /tableConfigs/{table}": ADMIN,
    "DELETE /tableConfigs/{table}": ADMIN,
    "PUT /tables/{table}": ADMIN,
    "DELETE /tables/{table}": ADMIN,
    "POST /tables/{table}/pauseConsumption": OPERATE,
    "POST /tables/{table}/resumeConsumption": OPERATE,
    "POST /tables/{table}/forceCommit": OPERATE,
    "POST /tables/{table}/connectors/{connector}/start": OPERATE,
    "POST /tables/{table}/connectors/{connector}/pause": OPERATE,
    "POST /tables/{table}/connectors/{connector}/reset": ADMIN,
    "POST /tables/{table}/timeBoundary": OPERATE,
    "DELETE /tables/{table}/timeBoundary": OPERATE,
    "POST /tables/{table}/replacements/{entry}/revert": OPERATE,
    "POST /tables/{table}/purges": ADMIN,
    "POST /tables/{table}/rejected/replay": OPERATE,
    "POST /backfills": OPERATE,
    "POST /backfills/{backfill}/resume": OPERATE,
    "POST /backfills/{backfill}/pause": OPERATE,
    "POST /backfills/{backfill}/cancel": OPERATE,
    "POST /backfills/{backfill}/revert": OPERATE,
    "POST /segments/{table}/reload": OPERATE,
    "POST /segments/{table}/{segment}/reload": OPERATE,
    "POST /segments/{table}/reset": OPERATE,
    "POST /segments/{table}/{segment}/reset": OPERATE,
    "POST /segments/{table}/startReplaceSegments": OPERATE,
    "POST /segments/{table}/endReplaceSegments": OPERATE,
    "POST /segments/{table}/revertReplaceSegments": OPERATE,
    "DELETE /segments/{table}/{segment}": ADMIN,
    "POST /tasks/schedule": OPERATE,
    "POST /ingestFromFile": OPERATE,
    "POST /ingestFromURI": OPERATE,
    "POST /jobs": OPERATE,
}

# `POST /verbs/{verb}`, by verb.
VERB_RIGHTS: Mapping[str, Right] = {
    **dict.fromkeys(("table_list", "table_show", "table_view", "table_validate", "query", "explain", "status"), READ),
    "table_copies": READ,
    **dict.fromkeys(("segments", "segment", "boundary", "replacements", "replacement", "rejected"), READ),
    **dict.fromkeys(("backfills", "backfill", "purges"), READ),
    "purge": ADMIN,
    "connector_reset": ADMIN,
    "connector_reset_plan": READ,
    **dict.fromkeys(("backfill_plan", "backfill_run", "backfill_pause", "backfill_cancel", "backfill_revert"), OPERATE),
    **dict.fromkeys(("pause_status", "runs", "run", "schedules", "connectors", "flows"), READ),
    **dict.fromkeys(("pause", "resume", "ingest", "move", "task_run", "job_run", "revert", "seal"), OPERATE),
    **dict.fromkeys(("replacement_end", "rejected_replay", "backfill_release"), OPERATE),
    **dict.fromkeys(("boundary_set", "boundary_clear", "connector_start", "connector_pause"), OPERATE),
    **dict.fromkeys(("table_create", "table_apply", "table_add", "table_drop", "table_undrop", "schema_put"), ADMIN),
}
_VERBS = "/verbs/"


def _compiled() -> list[tuple[str, re.Pattern[str], Right]]:
    patterns = []
    for place, right in PATH_RIGHTS.items():
        method, path = place.split(" ")
        if "{" in path:
            patterns.append((method, compile_path(path)[0], right))
    return patterns


_PATTERNS = _compiled()


def right_for(method: str, path: str) -> Right:
    """Return the right that a request needs."""
    if method in {"GET", "HEAD"}:
        return READ
    if method == "POST" and path.startswith(_VERBS):
        return VERB_RIGHTS.get(path.removeprefix(_VERBS), ADMIN)
    listed = PATH_RIGHTS.get(f"{method} {path}")
    if listed is not None:
        return listed
    rights = (right for name, pattern, right in _PATTERNS if name == method and pattern.match(path))
    return next(rights, ADMIN)
