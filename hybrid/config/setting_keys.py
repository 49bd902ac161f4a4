"""The settings that exist: name, default, type and meaning of each."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

Value = str | int | float | None


@dataclass(frozen=True)
class Key:
    """A setting: its name in `hybrid.toml` (`spark.master` is `master` under `[spark]`), default and meaning."""

    name: str
    default: Value
    convert: Callable[[str], Value]
    meaning: str
    least: int = 0  # of a number
    most: int | None = None

    @property
    def variable(self) -> str:
        """The environment variable of the setting, such as `HYBRID_SPARK_MASTER`."""
        return "HYBRID_" + self.name.replace(".", "_").upper()

    def value(self, text: str) -> Value:
        """The value that a text means; ValueError, which says what is expected, for another text."""
        try:
            value = self.convert(text)
        except ValueError as error:
            raise ValueError(EXPECTED.get(self.convert, "a number")) from error
        if isinstance(value, int | float) and not self._allows(value):
            raise ValueError(f"{self.least} or more" if self.most is None else f"within {self.least} and {self.most}")
        return value

    def _allows(self, number: float) -> bool:
        return number >= self.least and (self.most is None or number <= self.most)


def boolean_text(text: str) -> str:
    """`true` or `false`, as TOML and the environment write booleans; ValueError for anything else."""
    if text.lower() not in ("true", "false"):
        raise ValueError(text)
    return text.lower()


SHARED_FILES, STORE_FILES = "shared", "store"


def worker_files(text: str) -> str:
    """Where Spark's workers put the files of a half: `shared` or `store`; ValueError for anything else."""
    if text not in (SHARED_FILES, STORE_FILES):
        raise ValueError(text)
    return text


# What a converter that is not of numbers expects, as errors say it.
EXPECTED: dict[Callable[[str], Value], str] = {
    boolean_text: "true or false",
    worker_files: f"{SHARED_FILES} or {STORE_FILES}",
    int: "a whole number",
}

KEYS = (
    Key("kafka", None, str, "Kafka brokers, host:port[,host:port]; without it, those of the table config"),
    Key("server", None, str, "URL of a running server that is to do the work"),
    Key("token", None, str, "secret of an account on that server; better in HYBRID_TOKEN than on a command line"),
    Key("catalog", None, str, "PostgreSQL URL of the record of runs; without it, SQLite in the home"),
    Key("warehouse", None, str, "URL of the tables, such as s3://bucket/prefix; without it, only the home has them"),
    Key("take_over_after_s", 0, int, "silence after which a server that follows takes over, seconds; 0: never"),
    Key("pinning.servers", None, str, "URLs of the query servers that share the tables, by commas; none: each has all"),
    Key("pinning.self", None, str, "this server's URL among them"),
    Key("pinning.copies", 2, int, "how many of them hold each table"),
    Key("pinning.together", None, str, "tables that the same servers hold: groups by semicolons, names by commas"),
    Key("lock_timeout_s", 60.0, float, "how long an operation waits for another operation on the same half, seconds"),
    Key("ingest_interval_s", 1.0, float, "a server's pause between looks at a topic, seconds"),
    Key("query_timeout_ms", 60_000, int, "how long a server works on one statement, milliseconds; 0: no bound"),
    Key("query_rows_max", 1_000_000, int, "most rows that a server gives for one statement", least=1),
    Key(
        "query_result_bytes_max",
        256 * 1024**2,
        int,
        "most bytes of the values that a server gives for one statement",
        least=1,
    ),
    Key("query_memory_bytes", 1024**3, int, "memory of a server's statement over files, bytes; 0: no bound"),
    Key("query_memory_total_bytes", 0, int, "memory of all such statements at once, bytes; 0: half of the machine's"),
    Key("query_running_max", 0, int, "statements of one account that a server runs at once; 0: one for each processor"),
    Key("query_export_timeout_s", 3600, int, "how long a server works on one export, seconds; 0: no bound"),
    Key("query_log_bytes", 100 * 1024**2, int, "most bytes of the query log; 0: no log"),
    Key("query_log_days", 30, int, "days for which the query log keeps a statement"),
    Key(
        "query_log_values",
        "true",
        boolean_text,
        "whether the query log has the constants of statements; false: ? for each",
    ),
    Key("slow_query_ms", 1000, int, "duration from which a statement is marked as slow, milliseconds"),
    Key("disk_reserve_bytes", 1024**3, int, "bytes of the disk that statements, uploads and jobs leave free"),
    Key("upload_bytes_max", 1024**3, int, "longest file that a server takes by HTTP, bytes", least=1),
    Key("job_sql_timeout_s", 3600, int, "how long a server's job works on its statement, seconds", least=1),
    Key("job_sql_rows_max", 100_000_000, int, "most rows of the statement of a server's job", least=1),
    Key("retention_share_max", 0.5, float, "most of a half's rows that one scheduled retention drops, 0 to 1", most=1),
    Key("replacement_days_max", 0, int, "days after which a server takes back a replacement in progress; 0: never"),
    Key("input_folders", None, str, f"folders that work of a server's accounts may read, separated by '{os.pathsep}'"),
    Key("s3_buckets", None, str, "buckets that work of accounts may read as the server itself, by commas; *: all"),
    Key("s3_endpoints", None, str, "S3 endpoints that work of accounts may name, host[:port], by commas"),
    Key("cache_bytes", 2 * 1024**3, int, "memory in which a server keeps tables, bytes; 0: it reads files each time"),
    Key("pipeline_niceness", 10, int, "how far a server's Spark gives way while no work is late, 0 (not) to 19"),
    Key(
        "durable", "true", boolean_text, "whether what is acknowledged outlasts a power failure; false: only a process"
    ),
    Key("spark.master", "local[2]", str, "where Spark runs: local[2], spark://host:7077, yarn or sc://host:15002"),
    Key("spark.driver_memory", "2g", str, "heap of Spark's driver"),
    Key("spark.worker_python", None, str, "Python of Spark's workers; without it, this one, on a cluster python3"),
    Key("spark.worker_files", SHARED_FILES, worker_files, "where workers write: shared (the home's folders) or store"),
)
BY_NAME = {key.name: key for key in KEYS}
