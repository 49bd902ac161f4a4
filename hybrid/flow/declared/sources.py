"""The builders by which a flow's function names its files, in Spark's own form, so that flows for Spark run.

`spark.read` and `read_files` are batches; `spark.readStream.format("cloudFiles")` and `read_files_stream` are streams.
A stream's `load()` returns a plain frame of the new files, because the function is called for every micro-batch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hybrid.errors import SpecError
from hybrid.flow.declared.options import FORMATS, PREFIX, parse_source
from hybrid.flow.declared.session import bound, current

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CLOUD_FILES = "cloudfiles"


class FileReader:
    """`.format() .option() .options() .schema() .load()`, as in Spark's readers."""

    def __init__(self, spelling: str, *, streaming: bool, path: object = None, options: Mapping[str, object]) -> None:
        self._spelling, self._streaming, self._path = spelling, streaming, path
        self._options: dict[str, object] = {}
        self._schema: Any = None
        self.options(**options)

    def option(self, key: str, value: object) -> FileReader:
        """Sets an option; the last value of a name counts."""
        low = key.lower().removeprefix(PREFIX)
        for other in [name for name in self._options if name.lower().removeprefix(PREFIX) == low]:
            del self._options[other]
        self._options[key] = value
        return self

    def options(self, **options: object) -> FileReader:
        """Sets several options."""
        for key, value in options.items():
            if value is not None:
                self.option(key, value)
        return self

    def schema(self, schema: Any) -> FileReader:
        """Sets the columns, as a DDL text or a Spark schema; then nothing is inferred."""
        self._schema = schema
        return self

    def load(self, path: object = None) -> DataFrame:
        """The rows of the files: all of them, or the new ones."""
        place = f"{current(self._spelling).declaration.source}: {self._spelling}"
        source = parse_source(
            path if path is not None else self._path,
            self._options,
            place,
            streaming=self._streaming,
            schema=self._schema,
            infer_types=self._infers_types(),
        )
        return bound(self._spelling).read(source)

    def _infers_types(self) -> bool:
        return True


class FilesFunction(FileReader):
    """The result of `read_files(...)`: a builder that also behaves as the frame, without `.load()`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.load(), name)


class SparkReader(FileReader):
    """`spark.read` and `spark.readStream` in a flow file."""

    def __init__(self, *, streaming: bool) -> None:
        super().__init__("spark.readStream" if streaming else "spark.read", streaming=streaming, options={})
        self._format: str | None = None

    def format(self, name: str) -> SparkReader:
        """Sets json, csv or parquet; on a stream also cloudFiles. Spark itself reads other batches."""
        self._format = name
        return self

    def load(self, path: object = None, format: str | None = None, schema: Any = None, **options: object) -> Any:
        """The frame; for other formats, the one of Spark's own reader."""
        if format is not None:
            self._format = format
        if schema is not None:
            self._schema = schema
        self.options(**options)
        name = (self._format or "parquet").lower()
        if name == _CLOUD_FILES and self._streaming:
            self._spelling = 'spark.readStream.format("cloudFiles")'
            return super().load(path)
        if name in FORMATS:
            self.option("format", name)
            return super().load(path)
        if self._streaming or name == _CLOUD_FILES:
            raise SpecError(
                f"{self._source}: {self._spelling}.format('{self._format}') is not read by flows: streams of flows are "
                "files, by format('cloudFiles').",
                hint="Kafka is read by a table's streamConfigs or connectors: hybrid table create",
            )
        return self._sparks_own(path)

    def json(self, path: object, schema: Any = None, **options: object) -> Any:
        """Reads files of JSON objects."""
        return self.load(path, "json", schema, **options)

    def csv(self, path: object, schema: Any = None, **options: object) -> Any:
        """Reads files of comma-separated values."""
        return self.load(path, "csv", schema, **options)

    def parquet(self, path: object, **options: object) -> Any:
        """Reads Parquet files."""
        return self.load(path, "parquet", **options)

    def table(self, name: str) -> Any:
        """A table of Spark's own catalog. SpecError on a stream."""
        if self._streaming:
            raise SpecError(
                f"{self._source}: spark.readStream.table('{name}'): the stream of a table is not built. Streams of "
                "flows are files, by format('cloudFiles')."
            )
        return current("spark.read").start_spark().read.table(name)

    def __getattr__(self, name: str) -> Any:
        """Other methods of Spark's own reader: text, orc, jdbc."""
        if name.startswith("_") or self._streaming:
            raise AttributeError(f"{self._spelling} has no '{name}' in flow files")
        return getattr(self._sparks_reader(), name)

    @property
    def _source(self) -> str:
        return current(self._spelling).declaration.source

    def _sparks_own(self, path: object) -> Any:
        reader = self._sparks_reader()
        return reader.load() if path is None else reader.load(str(path))

    def _sparks_reader(self) -> Any:
        reader = current(self._spelling).start_spark().read
        if self._format is not None:
            reader = reader.format(self._format)
        if self._schema is not None:
            reader = reader.schema(self._schema)
        for key, value in self._options.items():
            reader = reader.option(key, str(value))
        return reader

    def _infers_types(self) -> bool:
        """The default of each spelling: cloudFiles and csv read texts unless inference is set."""
        return (self._format or "").lower() not in (_CLOUD_FILES, "csv")


def read_files(path: object, format: str | None = None, **options: object) -> FilesFunction:
    """All files at `path` as a batch: json, csv or parquet."""
    return FilesFunction("read_files", streaming=False, path=path, options={"format": format, **options})


def read_files_stream(path: object, format: str | None = None, **options: object) -> FilesFunction:
    """The files at `path` that the flow has not read yet."""
    return FilesFunction("read_files_stream", streaming=True, path=path, options={"format": format, **options})
