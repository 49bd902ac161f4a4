"""Resolves the home folder and every setting with its source: flag, `HYBRID_*`, `hybrid.toml` or default.

`<home>/hybrid.toml` holds settings at its top level, and the tables `[pinning]` and `[spark]`. In the latter `master`,
`driver_memory`, `worker_python` and `worker_files` are settings, every other key there is passed through to Spark
(`sql.shuffle.partitions = 8`, with or without `spark.` in front).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from hybrid.config.setting_keys import KEYS, SHARED_FILES, Key, Value
from hybrid.config.settings_file import read_settings_file
from hybrid.errors import NotFoundError, SpecError
from hybrid.runtime.sentence_repr import shown_as

if TYPE_CHECKING:
    from hybrid.config.pinning import Pinning

HOME_NAME = ".hybrid"
FILE_NAME = "hybrid.toml"
SERVE_LOCK = "serve.lock"  # held by a home's only server while it runs


@dataclass(frozen=True)
class Setting:
    """One resolved setting; `source` is `flag`, the environment variable, the file, or `default`."""

    name: str
    value: Value
    source: str
    meaning: str


@shown_as("{0.home}")
@dataclass(frozen=True)
class Settings:
    """Every setting of a home. `spark` are the keys of `[spark]` for Spark itself; `warnings` name unknown settings."""

    home: Path
    home_source: str
    values: tuple[Setting, ...]
    spark: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def kafka(self) -> str | None:
        """Default brokers, `host:port[,host:port]`, or None."""
        return self._text("kafka")

    @property
    def server(self) -> str | None:
        """URL of a running server, or None."""
        return self._text("server")

    @property
    def token(self) -> str | None:
        """The secret for that server, or None."""
        return self._text("token")

    @property
    def catalog(self) -> str | None:
        """URL of the database of the catalog; None: SQLite in the home."""
        return self._text("catalog")

    @property
    def warehouse_url(self) -> str | None:
        """URL of the object store that has the tables, of which the folder `warehouse` is a mirror; None: none has."""
        return self._text("warehouse")

    @property
    def take_over_after_s(self) -> float:
        """Seconds without a sign of life after which a following server takes the warehouse over; 0: never."""
        return float(self._value("take_over_after_s") or 0)

    @property
    def pinning(self) -> Pinning | None:
        """Which query servers hold which tables; None: each has all. SpecError when `[pinning]` cannot be honoured."""
        from hybrid.config.pinning import parse_pinning

        return parse_pinning(
            self._text("pinning.servers"),
            self._text("pinning.self"),
            int(self._value("pinning.copies") or 0),
            self._text("pinning.together"),
            self.warehouse_url,
        )

    @property
    def lock_timeout_s(self) -> float:
        """Seconds that an operation waits for another operation on the same half."""
        return float(self._value("lock_timeout_s") or 0)

    @property
    def ingest_interval_s(self) -> float:
        """Seconds that a server waits between two polls of a topic."""
        return float(self._value("ingest_interval_s") or 0)

    @property
    def retention_share_max(self) -> float:
        """The largest share of a half's rows that a scheduled run of retention may drop, 0 to 1."""
        return float(self._value("retention_share_max") or 0)

    @property
    def query_timeout_ms(self) -> int:
        """Timeout of a statement on a server, milliseconds."""
        return int(self._value("query_timeout_ms") or 0)

    @property
    def query_rows_max(self) -> int:
        """The most rows of a result that a server returns."""
        return int(self._value("query_rows_max") or 0)

    @property
    def query_result_bytes_max(self) -> int:
        """The most bytes of a result that a server returns."""
        return int(self._value("query_result_bytes_max") or 0)

    @property
    def query_export_timeout_s(self) -> int:
        """Timeout of an export on a server, seconds; 0: no limit."""
        return int(self._value("query_export_timeout_s") or 0)

    @property
    def query_log_bytes(self) -> int:
        """The most bytes of the query log; 0: there is none."""
        return int(self._value("query_log_bytes") or 0)

    @property
    def query_log_days(self) -> int:
        """Days for which the query log keeps a statement."""
        return int(self._value("query_log_days") or 0)

    @property
    def query_log_values(self) -> bool:
        """Whether the query log has the constants of statements."""
        return self._text("query_log_values") == "true"

    @property
    def slow_query_ms(self) -> int:
        """The duration from which a statement is marked as slow, milliseconds."""
        return int(self._value("slow_query_ms") or 0)

    @property
    def disk_reserve_bytes(self) -> int:
        """Bytes of the disk that statements, uploads and jobs leave free."""
        return int(self._value("disk_reserve_bytes") or 0)

    @property
    def query_memory_total_bytes(self) -> int:
        """Memory of all concurrent statements over files, bytes; 0: half of the machine's."""
        return int(self._value("query_memory_total_bytes") or 0)

    @property
    def query_running_max(self) -> int:
        """The most concurrent statements of an account; 0: as many as there are processors, and at least two."""
        return int(self._value("query_running_max") or 0)

    @property
    def query_memory_bytes(self) -> int:
        """Memory of a statement that a server answers from files, bytes; 0: no limit."""
        return int(self._value("query_memory_bytes") or 0)

    @property
    def upload_bytes_max(self) -> int:
        """The longest file that a server accepts, bytes."""
        return int(self._value("upload_bytes_max") or 0)

    @property
    def job_sql_timeout_s(self) -> int:
        """Timeout of the statement of a server's job, seconds."""
        return int(self._value("job_sql_timeout_s") or 0)

    @property
    def job_sql_rows_max(self) -> int:
        """The most rows of the statement of a server's job."""
        return int(self._value("job_sql_rows_max") or 0)

    @property
    def replacement_days_max(self) -> int:
        """Days after which a server reverts a replacement that is still in progress; 0: never."""
        return int(self._value("replacement_days_max") or 0)

    @property
    def input_folders(self) -> tuple[Path, ...]:
        """Folders that jobs of a server's accounts may read; none by default."""
        return tuple(Path(text).expanduser() for text in (self._text("input_folders") or "").split(os.pathsep) if text)

    @property
    def s3_buckets(self) -> frozenset[str]:
        """Buckets that jobs of a server's accounts may read with the server's own identity."""
        return _names(self._text("s3_buckets"))

    @property
    def s3_endpoints(self) -> frozenset[str]:
        """S3 endpoints that jobs of a server's accounts may name, in lower case and without a scheme."""
        return frozenset(name.rpartition("://")[2].rstrip("/").lower() for name in _names(self._text("s3_endpoints")))

    @property
    def cache_bytes(self) -> int:
        """Memory of a server's cache, bytes; 0: no cache."""
        return int(self._value("cache_bytes") or 0)

    @property
    def pipeline_niceness(self) -> int:
        """The increment of the niceness of a server's pipeline while no work is late, 0 to 19."""
        return int(self._value("pipeline_niceness") or 0)

    @property
    def durable(self) -> bool:
        """Whether files are synced before a commit that names them is acknowledged."""
        return self._text("durable") == "true"

    @property
    def spark_master(self) -> str:
        """Spark's master URL, such as `local[2]`."""
        return self._text("spark.master") or "local[2]"

    @property
    def has_local_spark(self) -> bool:
        """Whether Spark's workers run on this machine, in the process that starts them."""
        return self.spark_master.startswith("local")

    @property
    def has_spark_connect(self) -> bool:
        """Whether Spark is a server that this process is a client of, and starts no JVM for."""
        return self.spark_master.startswith("sc://")

    @property
    def spark_connect_url(self) -> str:
        """The URL of that server. SpecError when it has a token, which settings show, or beside `worker_python`."""
        if ";token=" in self.spark_master:
            raise SpecError(
                "spark.master has a token, which `hybrid config show` and messages would show.",
                hint="Put it into the variable SPARK_CONNECT_AUTHENTICATE_TOKEN instead.",
            )
        if self.spark_worker_python is not None:
            raise SpecError(
                "spark.worker_python does not reach the workers of a Spark Connect server.",
                hint="Set PYSPARK_PYTHON where the server is started, and take worker_python out of [spark] here.",
            )
        return self.spark_master

    @property
    def spark_driver_memory(self) -> str:
        """Heap of Spark's driver, such as `2g`."""
        return self._text("spark.driver_memory") or "2g"

    @property
    def spark_worker_python(self) -> str | None:
        """The Python that Spark's workers run; None: see `hybrid.lake.spark`."""
        return self._text("spark.worker_python")

    @property
    def workers_share_files(self) -> bool:
        """Whether Spark's workers see the home's folders. SpecError when they do not and there is no store instead."""
        is_shared = self._text("spark.worker_files") == SHARED_FILES
        if is_shared and self.has_spark_connect:
            raise SpecError(
                "spark.master is a Spark Connect server, which does not see the home's folders: the tables must be on "
                "an S3 store, and its workers write there.",
                hint='Set warehouse = "s3://bucket/prefix" in hybrid.toml, and worker_files = "store" under [spark].',
            )
        if not is_shared and self.warehouse_url is None:
            raise SpecError(
                "spark.worker_files is 'store', but the tables of this home are on no store: 'warehouse' is not set.",
                hint='Set warehouse = "s3://bucket/prefix" in hybrid.toml, or worker_files = "shared" under [spark].',
            )
        if not is_shared and not str(self.warehouse_url).startswith("s3://"):
            raise SpecError(
                f"spark.worker_files is 'store', but workers write to S3 stores only, not to {self.warehouse_url}.",
                hint='Set worker_files = "shared" under [spark], or use an S3 store.',
            )
        return is_shared

    @property
    def warehouse(self) -> Path:
        """The folder of the tables' halves."""
        return self.home / "warehouse"

    @property
    def spill(self) -> Path:
        """The folder for data that exceeds a server's memory."""
        return self.home / "spill"

    @property
    def logs(self) -> Path:
        """The folder of the logs."""
        return self.home / "logs"

    def _value(self, name: str) -> Value:
        return next(setting.value for setting in self.values if setting.name == name)

    def _text(self, name: str) -> str | None:
        value = self._value(name)
        return None if value is None else str(value)


def load_settings(
    *,
    home: Path | None = None,
    flags: Mapping[str, str | None] | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """Resolve the home folder and every setting; nothing is created.

    `flags` are the values of the command line, by setting name; None: not given. With `home` the variable
    HYBRID_SERVER does not count, nor HYBRID_TOKEN beside it: they are of another home's server. SpecError when
    `hybrid.toml` cannot be read or a value is not of its setting's type.
    """
    env = os.environ if environ is None else environ
    folder, source = find_home(home, env, cwd or Path.cwd())
    if source == "flag" and env.get("HYBRID_SERVER"):  # the server of another home, and a secret for it
        env = {name: value for name, value in env.items() if name not in ("HYBRID_SERVER", "HYBRID_TOKEN")}
    path = folder / FILE_NAME
    file = read_settings_file(path)
    values = tuple(_resolve(key, flags or {}, env, file.values, path) for key in KEYS)
    return Settings(folder, source, values, file.spark, file.warnings)


def find_home(home: Path | None, environ: Mapping[str, str], cwd: Path) -> tuple[Path, str]:
    """The home folder, absolute, and its source: flag, `HYBRID_HOME`, `.hybrid` here or above, else `.hybrid` here."""
    folder, source = _search_home(home, environ, cwd)
    if "%" in str(folder):  # paths in a Delta log are percent-encoded, and its readers decode the folder too
        raise SpecError(f"The home folder {folder} has a '%' in its path.", hint="Choose another with --home DIR.")
    return folder, source


_HOME_SOURCES = {"flag": "--home", "HYBRID_HOME": "HYBRID_HOME", "found": "found", "default": "the default"}


def missing_home(settings: Settings) -> NotFoundError:
    """The error for a home folder that does not exist. It names the folder and its source."""
    where = _HOME_SOURCES[settings.home_source]
    return NotFoundError(
        f"The home {settings.home} ({where}) does not exist.",
        hint="Name another (--home DIR, HYBRID_HOME), or make it: hybrid table create --help, hybrid demo.",
    )


def _search_home(home: Path | None, environ: Mapping[str, str], cwd: Path) -> tuple[Path, str]:
    if home is not None:
        return (cwd / home.expanduser()).absolute(), "flag"
    if environ.get("HYBRID_HOME"):
        return (cwd / Path(environ["HYBRID_HOME"]).expanduser()).absolute(), "HYBRID_HOME"
    for folder in (cwd, *cwd.parents):
        if (folder / HOME_NAME).is_dir():
            return (folder / HOME_NAME).absolute(), "found"
    return (cwd / HOME_NAME).absolute(), "default"


def _resolve(
    key: Key, flags: Mapping[str, str | None], env: Mapping[str, str], written: Mapping[str, Value], path: Path
) -> Setting:
    flag = flags.get(key.name)
    if flag is not None:
        return Setting(key.name, _converted(key, flag, "flag"), "flag", key.meaning)
    if env.get(key.variable):
        return Setting(key.name, _converted(key, env[key.variable], key.variable), key.variable, key.meaning)
    if key.name in written:
        return Setting(key.name, _converted(key, str(written[key.name]), str(path)), str(path), key.meaning)
    return Setting(key.name, key.default, "default", key.meaning)


def _names(text: str | None) -> frozenset[str]:
    """The names in a comma-separated list."""
    return frozenset(name.strip() for name in (text or "").split(",") if name.strip())


def _converted(key: Key, text: str, source: str) -> Value:
    try:
        return key.value(text)
    except ValueError as error:
        raise SpecError.at(source, key.name, f"'{text}' is not {error}") from error
