"""Query responses in the format of Pinot's broker.

Format: docs.pinot.apache.org, "Querying Pinot", the broker's response format; error codes as in Pinot's QueryErrorCode.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response

from hybrid.errors import HybridError
from hybrid.query.engine import QueryResult
from hybrid.query.execution import parse_timeout
from hybrid.runtime.json_values import json_value

_SERVERS = {"numServersQueried": 1, "numServersResponded": 1}
_NONE = {
    "numSegmentsQueried": 0,
    "numSegmentsProcessed": 0,
    "numSegmentsMatched": 0,
    "numConsumingSegmentsQueried": 0,
    "numDocsScanned": 0,
    "totalDocs": 0,
    "timeUsedMs": 0,
    "minConsumingFreshnessTimeMs": 0,
}


def json_response(document: Mapping[str, Any]) -> Response:
    """The response with the document of a query."""
    return Response(json.dumps(document, ensure_ascii=False, separators=(",", ":")), media_type="application/json")


def query_answer(result: QueryResult, request_id: str) -> dict[str, Any]:
    """Return a result table with statistics. Warnings go into `warnings`: Pinot's clients raise on any exception."""
    return {
        "resultTable": {
            "dataSchema": {"columnNames": list(result.column_names), "columnDataTypes": list(result.column_types)},
            "rows": _rows(result),
        },
        "exceptions": [],
        **_SERVERS,
        **_NONE,
        **result.stats.to_json(),
        "numEntriesScannedInFilter": 0,
        "numEntriesScannedPostFilter": 0,
        "numGroupsLimitReached": False,
        "partialResult": False,
        "requestId": request_id,
        "revision": str(result.revision),
        "answeredFrom": result.source,
        "warnings": list(result.warnings),
    }


def failed_answer(error: HybridError, request_id: str) -> dict[str, Any]:
    """Return the document of a failed query: HTTP 200, with the reason in `exceptions`."""
    message = f"{error.words} {error.hint}" if error.hint else error.words
    return {
        "exceptions": [{"errorCode": error.pinot_code, "message": message}],
        **_SERVERS,
        **_NONE,
        "partialResult": True,
        "requestId": request_id,
    }


def _rows(result: QueryResult) -> list[list[Any]]:
    return [[_value(value, kind) for value, kind in zip(row, result.column_types, strict=True)] for row in result.rows]


def _value(value: object, kind: str) -> Any:
    if isinstance(value, datetime) and kind.startswith("TIMESTAMP"):
        return _timestamp(value)
    if isinstance(value, list):
        return [_value(item, kind) for item in value]
    return json_value(value)


def _timestamp(value: datetime) -> str:
    """Format a time as java.sql.Timestamp does: at least one digit of the second's fraction."""
    plain = value.astimezone(UTC).replace(tzinfo=None) if value.utcoffset() is not None else value
    whole = plain.isoformat(sep=" ", timespec="seconds")
    return f"{whole}.{f'{plain.microsecond:06d}'.rstrip('0') or '0'}"


def requested_options(options: str | None) -> dict[str, str]:
    """Parse a request's `queryOptions` (`a=1;b=2`), by lower-case name."""
    pairs = (part.partition("=") for part in (options or "").split(";"))
    return {name.strip().lower(): value.strip() for name, equals, value in pairs if equals}


def requested_timeout(options: Mapping[str, str]) -> int | None:
    """Return `timeoutMs` among a request's options, milliseconds."""
    text = options.get("timeoutms")
    if text is None:
        return None
    return parse_timeout(text)
