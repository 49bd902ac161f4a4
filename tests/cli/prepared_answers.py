"""Answers of verbs, prepared: what commands print is tested without a server, a home or a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hybrid.errors import NotFoundError
from hybrid.operations.backups.backups import BackupSummary
from hybrid.operations.warehouse.sync import HalfMirror, WarehouseStatus
from hybrid.store.ownership import Claim, WarehouseOwner

_PLAN_ID = "backfill-5f0c1d2e3a4b5c6d"
_MOVE = "RealtimeToOfflineSegmentsTask"
_RIDE = {
    "ride_id": "r-000017",
    "started_ms": 1764045855732,
    "city": "Amsterdam",
    "tags": ["late", "night"],
    "fare": "763.000000000000000000",
    "distance_km": 12.5,
    "note": None,
}
_SQL = (
    'SELECT "city", COUNT(*) AS "count(*)" FROM (SELECT "city", "fare" FROM "rides_offline" WHERE '
    '"_hy_time" < 1764028800000 UNION ALL SELECT "city", "fare" FROM "rides_realtime" WHERE "_hy_time" >= '
    '1764028800000 OR "_hy_offset" >= 120000) AS "rides" WHERE "fare" > 100 GROUP BY "city" LIMIT 10'
)
_LINES = [
    ["revision", "rides:OFFLINE@12,REALTIME@48,0@196443"],
    ["rides: table", "rides"],
    ["rides: boundary", "T 2025-11-25T00:00:00Z (1764028800000), F rides/0/0@120000, rides/0/1@119873"],
    ["rides: limit", "2025-11-25T00:00:00Z (1764028800000), by mode exact"],
    ["rides: OFFLINE", "4 files of 3 segments, 180211 rows; 9 files pruned: statistics of fare"],
    ["rides: REALTIME", "2 files of 2 segments, 16232 rows"],
    ["rides: tail", "11 rows up to rides/0/0@120411, rides/0/1@120204"],
    ["rides: filters on statistics", "fare > '100'"],
    ["rides: relation", 'SELECT "city", "fare" FROM "rides_offline" WHERE "_hy_time" < 1764028800000'],
    ["statement", _SQL],
]

_READ = {"current": True, "shown": 0, "markers": 0}
_ERASURE = {
    "id": "erasure-5f0c1a2b3c4d5e6f", "created_at": "2025-11-25T06:00:00Z",
    "tables": [
        {"table": "rides", "columns": ["rider"], "condition": "rider = ?", "condition_digest": "scrypt:00:11",
         "before_at": "2025-11-25T06:00:03Z", "after_at": "2025-11-25T06:01:12Z", "undecided": 0, "markers": 0,
         "before": [{**_READ, "place": "OFFLINE", "files": 12, "rows": 180211, "matching": 17},
                    {**_READ, "place": "staged", "current": False, "files": 2, "rows": 90, "matching": 4}],
         "after": [{**_READ, "place": "OFFLINE", "files": 12, "rows": 180194, "matching": 0}],
         "messages": [{"topic": "rides", "epoch": 0, "partition": 1, "first": 4711, "last": 118201, "messages": 17}]},
    ],
    "state": "DONE", "reason": "request 4711", "user": "ada", "undecided": False, "dropped_copies": False,
    "attempts": 1, "finished_at": "2025-11-25T06:01:14Z",
    "steps": [
        {"at": "2025-11-25T06:00:41Z", "table": "rides", "step": "delete", "act": _PLAN_ID,
         "sentence": "17 rows were shown. Corrected 3 of 3 buckets of 'rides': 17 rows were removed."},
        {"at": "2025-11-25T06:01:13Z", "table": None, "step": "mask", "act": None,
         "sentence": "2 texts of logs, records and lineage were masked."},
    ],
    "outside": [
        {"place": "topic 'rides', partition 1", "who": "whoever runs the broker",
         "detail": "17 messages at offsets 4711 to 118201, of the topic's epoch 0"},
        {"place": "backups", "detail": "copies of the home", "who": "whoever keeps them"},
    ],
    "texts": 2, "error": None,
    "sentence": "Erased from 'rides': 21 stored rows matched, and none is left in 180194 rows of 12 files. 2 places "
    "are out of reach: see the certificate.",
}  # fmt: skip


def _run(run_id: str, created_at: str, kind: str, state: str, result: str | None) -> dict[str, Any]:
    return {
        "id": run_id,
        "created_at": created_at,
        "finished_at": "2025-11-25T05:39:41.102Z",
        "table": "rides",
        "type": kind,
        "state": state,
        "result": result,
    }


_RUNS = [
    _run("run-2d20809138da44e1", "2025-11-25T05:39:39.213Z", "ingest", "FAILED", "Kafka at localhost:9092 does not "
         "answer within 3 s. What was committed before stays; nothing of this run was."),
    _run(f"Task_{_MOVE}_1764045855732", "2025-11-25T04:44:15.732+00:00", _MOVE, "DONE",
         "Moved 12,031 rows of 1 bucket (2025-11-24T00:00:00Z to 2025-11-25T00:00:00Z) to 1 segment."),
    _run("run-8800aa3138da44e1", "2025-11-25T04:40:02Z", "ingest", "FAILED", "The topic 'rides' does not exist."),
]  # fmt: skip
_SEGMENTS = [
    ("rides_2025-11-23T00:00:02Z_2025-11-23T23:59:58Z_0", "OFFLINE", "OFFLINE", 180211, 28480213, None),
    ("rides__0__3__20251125T0438Z", "REALTIME", "SEALED", 16001, 1203355, 104000),
    ("rides__1__3__20251125T0438Z", "REALTIME", "CONSUMING", 231, 2848, 119973),
]


def _segment(name: str, half: str, state: str, rows: int, size: int, offset: int | None) -> dict[str, Any]:
    return {
        "name": name,
        "half": half,
        "state": state,
        "rows": rows,
        "bytes": size,
        "files": 1,
        "start": "2025-11-23T00:00:02.125Z",
        "end": "2025-11-23T23:59:58Z",
        "start_ms": 1763856002125,
        "end_ms": 1763942398000,
        "partition": None if offset is None else 0,
        "start_offset": offset,
        "end_offset": None if offset is None else offset + rows,
        "created_at": "2025-11-25T04:38:10.001Z",
    }


def _bucket(day: int, unit: int | None, samples: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "start": f"2025-11-{day}T00:00:00Z",
        "end": f"2025-11-{day + 1}T00:00:00Z",
        "state": "present",
        "rows_before": 98021,
        "rows_after": 98021,
        "added": 0,
        "removed": 0,
        "changed": 1204 if unit is not None else 0,
        "changed_columns": {"fare": 1204} if unit is not None else {},
        "swap": unit,
        "samples": samples,
    }


_SAMPLES = [
    {"change": "changed", "before": _RIDE, "after": {**_RIDE, "fare": "7.630000000000000000"}},
    {
        "change": "changed",
        "before": {**_RIDE, "ride_id": "r-000018"},
        "after": {**_RIDE, "ride_id": "r-000018", "fare": "0.500000000000000000", "note": "corrected by hand"},
    },
    {"change": "removed", "before": {**_RIDE, "ride_id": "r-000019"}, "after": None},
]
_PLAN = {
    "id": _PLAN_ID,
    "table": "rides",
    "base_revision": "rides:OFFLINE@12,REALTIME@48",
    "created_at": "2025-11-25T05:41:00.5Z",
    "change": "update fare = fare / 100 where fare > 100",
    "reason": None,
    "user": "ada",
    "sentence": "Corrects 1,204 of 196,042 rows in 1 of 2 buckets of 'rides'.",
    "rows": 98021,
    "bytes": 14240106,
    "seconds": 1.75,
    "checks": [],
    "failed_checks": [],
    "warnings": [],
    "inputs": [],
    "buckets": [_bucket(23, 0, _SAMPLES), _bucket(24, None, [])],
}
_BACKFILL = {
    "id": _PLAN_ID,
    "table": "rides",
    "created_at": "2025-11-25T05:41:00.5Z",
    "state": "PLANNED",
    "buckets_done": 0,
    "buckets_total": 1,
    "change": "update fare = fare / 100 where fare > 100",
    "result": "Corrects 1,204 of 196,042 rows in 1 of 2 buckets of 'rides'.",
    "reason": "fares were in cents",
    "user": "ada",
    "error": None,
    "taken": 0,
}
_REPLACEMENT = {
    "id": "replace-1f2e3d4c5b6a7988",
    "kind": "replace",
    "created_at": "2025-11-25T05:50:12.875Z",
    "state": "ACTIVE",
    "version": 13,
    "segments_from": ["rides_2025-11-23T00:00:02Z_2025-11-23T23:59:58Z_0"],
    "segments_to": ["rides_2025-11-23T00:00:02Z_2025-11-23T23:59:58Z_0"],
    "rows_before": 180211,
    "rows_after": 180211,
    "changed": 1204,
    "user": "ada",
    "reason": "prices were net",
    "result": "Replaced 1 segment: 180,211 rows became 180,211; 1,204 changed in fare.",
    "inputs": [{"path": "/data/corrected/rides.parquet", "bytes": 14240106, "sha256": "9f86d081884c7d65"}],
}
_TABLE = {
    "name": "rides",
    "halves": ["REALTIME", "OFFLINE"],
    "time_column": "started_ms",
    "primary_key": ["ride_id"],
    "topic": "rides",
    "brokers": "kafka-1.example:9092,kafka-2.example:9092",
}
_STATUS = {
    "table": "rides",
    "state": "OK",
    "offline_rows": 180211,
    "offline_segments": 3,
    "realtime_rows": 16232,
    "realtime_segments": 2,
    "consuming_segments": 1,
    "boundary": "2025-11-25T00:00:00Z",
    "override": None,
    "behind": 0,
    "rejected": 3,
    "last_task": f"{_MOVE} DONE: Moved 12,031 rows of 1 bucket (2025-11-24T00:00:00Z to 2025-11-25T00:00:00Z) to 1 "
    "segment.",
    "visible_rows": 196443,
    "stored_twice_rows": 12031,
    "stored_twice_bytes": 1048576,
    "bytes": 14240106,
}
_DISK = {"logs": 4_210_004, "kafka": 1_310_720, "dropped_copies": 812_000_000, "free": 52_000_000_000}
_STOPPED = {
    **_STATUS,
    "table": "orders",
    "state": "Kafka at localhost:9092 does not answer within 1.5 s: nothing is ingested.",
    "behind": None,
    "boundary": "2021-09-26T16:00:00.001Z",
    "override": "2021-09-26T16:00:00.001Z",
    "last_task": None,
    "visible_rows": None,
    "visible_rows_reason": "the statement took longer than 3 s",
    "stored_twice_rows": 0,
    "stored_twice_bytes": 0,
    "bytes": 2848,
}

_LOGGED = {
    "id": "0d7a6a8b0f2a4c55", "started_at": "2025-11-25T05:39:39.213Z", "duration_ms": 12031.25, "state": "DONE",
    "slow": True, "account": "ada", "client": "10.0.0.7 Grafana/12.3", "tables": ["rides"], "source": "files+stream",
    "rows": 12, "segments": 3, "bytes": 14240106, "revision": "rides[OFFLINE=12 REALTIME=48]", "code": None,
    "error": None, "statement": 'select "city", count(*), avg(fare) from rides where started_ms > ago(\'P7D\') group '
    "by 1 order by 2 desc limit 12",
}  # fmt: skip
_NO_COLUMN = {
    **_LOGGED, "id": "1e7a6a8b0f2a4c56", "duration_ms": 1.25, "state": "FAILED", "slow": False, "account": None,
    "tables": [], "source": None, "rows": None, "segments": None, "bytes": None, "revision": None, "code": 710,
    "error": "Column 'faer' does not exist. Did you mean 'fare'?", "statement": "select faer from rides",
}  # fmt: skip

ANSWERS: Mapping[str, Any] = {
    "status": {"home": "/data/hybrid", "tables": [_STOPPED, _STATUS], "healthy": False, "disk": _DISK},
    "table_list": [
        {**_TABLE, "bytes": 14240106},
        {**_TABLE, "name": "cities", "halves": ["OFFLINE"], "topic": None, "brokers": None, "bytes": 2848},
    ],
    "table_dropped": [
        {"name": "rides@20251124T053939.213000Z", "table": "rides", "dropped_at": "2025-11-24T05:39:39.213+00:00",
         "rows": 196443, "bytes": 14240106, "state": "DROPPED"},
        {"name": "cities@20251020T010203.000004Z.purging", "table": "cities",
         "dropped_at": "2025-10-20T01:02:03.000+00:00", "rows": None, "bytes": 2848, "state": "PURGING"},
    ],
    "table_show": {
        **_TABLE,
        "columns": {
            "ride_id": "STRING", "started_ms": "LONG", "city": "STRING", "tags": "STRING[]", "fare": "BIG_DECIMAL",
            "distance_km": "FLOAT", "note": "STRING",
        },
        "move": {"bucket_ms": 86400000, "buffer_ms": 7200000, "merge": "concat", "round_ms": None, "aggregations": {}},
        "revert_window_ms": 2592000000,
        "retention_ms": {},
        "merge_levels": [],
    },
    "runs": _RUNS,
    "run": _RUNS[0],
    "run_hints": {_RUNS[0]["id"]: "hybrid kafka start", _RUNS[2]["id"]: "hybrid kafka topic create rides"},
    "schedules": [
        {"table": "rides", "type": _MOVE, "schedule": "0 */10 * * * ?", "next_run": "2025-11-25T05:50:00Z",
         "state": "WAITING", "result": "Nothing to move: the bucket from 2025-11-25T00:00:00Z is not closed yet."},
    ],
    "segments": [_segment(*segment) for segment in _SEGMENTS],
    "segment": _segment(*_SEGMENTS[1]),
    "boundary": {
        "table": "rides", "mode": "exact", "time_column": "started_ms", "time": "2025-11-25T00:00:00Z",
        "time_ms": 1764028800000, "frontier": {"rides/0/0": 120000, "rides/0/1": 119873},
        "limit": "2025-11-25T00:00:00Z", "limit_ms": 1764028800000, "override": None, "override_ms": None,
        "time_value": "1764028799999",
    },
    "replacements": [_REPLACEMENT],
    "replacement": _REPLACEMENT,
    "backfills": [_BACKFILL],
    "backfill": {**_BACKFILL, "plan": _PLAN},
    "backfill_plan": _PLAN,
    "connectors": [
        {"name": "rides.stream", "state": "RUNNING", "detail": None, "transport": "kafka_input", "records": 196443,
         "lag": 12031, "errors": 0},
        {"name": "rides.historical", "state": "FAILED", "detail": "s3://archive/rides/2024 cannot be read: access is "
         "denied. It is tried again in 60 s.", "transport": "delta_table_input", "records": 0, "lag": None,
         "errors": 4},
    ],
    "flows": [
        {"target": "rides_by_city", "flow": "load_archive", "type": "append", "state": "DONE",
         "last_run": "2025-11-25T05:12:00.001Z", "rows": 1204311, "rejected": 2, "files": 31, "refreshes": 0,
         "result": "Loaded 1,204,311 rows of 31 files; 2 were rejected."},
    ],
    "rejected": [
        {"topic": "rides", "partition": 1, "offset": 118201, "reason": "fare: 'n/a' is no BIG_DECIMAL",
         "value": '{"ride_id": "r-000401", "started_ms": 1764045855732, "city": "Zürich", "fare": "n/a", "tags": []}'},
    ],
    "purges": [
        {"id": "purge-00aa11bb22cc33dd", "created_at": "2025-11-25T06:00:00Z", "columns": ["ride_id"],
         "reason": "request 4711", "user": "ada", "sentence": "Removed 17 rows from 4 places; none is left."},
    ],
    "erasures": [_ERASURE],
    "erasure": _ERASURE,
    "queries": [_LOGGED, _NO_COLUMN],
    "explain": {"plan": {}, "lines": _LINES},
    "query": {
        "columns": ["city", "rides", "fares", "mean", "last", "remark"],
        "types": ["STRING", "LONG", "BIG_DECIMAL", "DOUBLE", "TIMESTAMP", "STRING"],
        "rows": [
            ["Amsterdam", 120034, "916059.480000000000000000", 7.631666666666667, "2025-11-25T05:39:39.213Z", None],
            ["日本", 7, "0.500000000000000000", 0.07142857142857142, "2025-11-25T05:39:40Z",
             "No ride of this city has ended yet, so that it has no fare at all; "
             "see the column of states in the table of rides."],
        ],
        "warnings": [], "revision": "", "tables": ["rides"], "source": "files",
    },
}  # fmt: skip
_EXPLAINED = {**ANSWERS["query"], "columns": ["Subject", "Plan"], "types": ["STRING", "STRING"], "rows": _LINES}


def prepared_backups() -> list[BackupSummary]:
    """The backups of a directory."""
    revision = "rides[OFFLINE=31 REALTIME=20417 boundary=2025-11-24T00:00:00Z{kafka/rides/0/0@118201}]"
    damaged = (
        "/backups/hybrid/backups/20251124T020000117Z-0c4d5e.json is damaged: its content does not have its checksum."
    )
    return [
        BackupSummary(
            "20251125T020000213Z-3f2a1b", "WHOLE", "2025-11-25T02:00:00.213Z", ("rides", "rides_by_city"), 1204,
            734003211, "/data/hybrid", "1.0.0", revision,
        ),
        BackupSummary("20251124T020000117Z-0c4d5e", "DAMAGED", None, (), None, None, None, None, damaged),
    ]  # fmt: skip


class PreparedClient:
    """Stands in for the client of a server: answers each verb from `ANSWERS`, or with nothing when `is_empty`."""

    is_empty = False

    def __init__(self, *_: object) -> None:
        pass

    def call(self, verb: str, arguments: Mapping[str, Any]) -> Any:
        """The prepared answer."""
        if verb not in ANSWERS:
            raise NotFoundError(f"No answer is prepared for '{verb}'.")
        answer = ANSWERS[verb]
        if verb == "query" and "EXPLAIN" in arguments["sql"]:
            return _EXPLAINED
        return [] if self.is_empty and isinstance(answer, list) else answer


def prepared_warehouse() -> WarehouseStatus:
    """A warehouse of another home, which this one follows."""
    owner = WarehouseOwner("0123456789abcdef0123456789abcdef", "tables-1.example.org:/var/lib/hybrid/home")
    url = "s3://company-tables/production/warehouse"
    halves = (
        HalfMirror("rides", "OFFLINE", f"{url}/rides/OFFLINE-2063900c", 412, 412),
        HalfMirror("rides", "REALTIME", f"{url}/rides/REALTIME-3d42cfe8", 48_211, 48_213),
        HalfMirror("payments_of_all_regions", "OFFLINE", f"{url}/payments_of_all_regions/OFFLINE-1f2e3d4c", 7, None),
    )
    return WarehouseStatus(url, Claim(owner, "2025-11-25T05:39:39+00:00", 2), False, halves)
