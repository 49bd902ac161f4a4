"""Routes `/ingestFromFile` and `/ingestFromURI`: add one file as a segment of a table's OFFLINE half."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote, urlsplit

from fastapi import Query, Request
from starlette.concurrency import run_in_threadpool

from hybrid.clock import wall_clock_ms
from hybrid.config.input_rules import InputRules
from hybrid.config.job_reader import DATA_FORMATS
from hybrid.config.table_config import Half
from hybrid.errors import NotFoundError, SpecError, UsageError, suggestion
from hybrid.home.accounts import Right
from hybrid.home.input_access import UPLOAD, rules_of
from hybrid.serve.authorization import needs
from hybrid.serve.bodies import StrictRouter, document
from hybrid.serve.context import ServerContext, context_of, source_of
from hybrid.serve.jobs import spec_text
from hybrid.serve.openapi import file_form, shown
from hybrid.serve.path_parameters import half_in, path_table
from hybrid.serve.uploads import remove_upload

router = StrictRouter(tags=["jobs"])
_READER, _NAMING, _NAME_TYPE = "recordReader.prop.", "segmentNameGenerator.configs.", "segmentNameGenerator.type"
_POSTFIX = "segment.name.postfix"
_TEXT_MAX = 10_000
_DONE = shown(
    {
        "status": "Successfully ingested file into table: orders_OFFLINE as segment: orders_1_2_1637491080000_0",
        "sentence": "Added segment 'orders_1_2_1637491080000_0': 0 rows before, 7 after; 7 added.",
        "run": "job_1637491080000",
    }
)
TableAndType = Annotated[
    str, Query(alias="tableNameWithType", max_length=200, description="As orders_OFFLINE", examples=["orders_OFFLINE"])
]
BatchConfig = Annotated[
    str,
    Query(
        alias="batchConfigMapStr",
        max_length=_TEXT_MAX,
        description="A JSON object of texts: inputFormat, recordReader.prop.*, segmentNameGenerator.*",
        examples=['{"inputFormat":"json"}'],
    ),
]


@dataclass(frozen=True)
class _FileRequest:
    """Target table, file format and segment naming of one ingestion request."""

    table: str
    data_format: str
    reader: dict[str, str]
    name_type: str
    naming: dict[str, str]

    def spec(self, file: Path) -> str:
        """Return the job spec for one file."""
        return spec_text(
            {
                "jobType": "SegmentCreationAndTarPush",
                "inputDirURI": file.as_uri(),
                "recordReaderSpec": {"dataFormat": self.data_format, "configs": self.reader},
                "tableSpec": {"tableName": self.table},
                "segmentNameGeneratorSpec": {"type": self.name_type, "configs": self.naming},
            }
        )


@router.post(
    "/ingestFromFile",
    summary="Add an uploaded file as a segment",
    responses=_DONE,
    openapi_extra={"requestBody": {"required": True, "content": {"multipart/form-data": file_form()}}},
)
@needs(Right.OPERATE)
async def ingest_file(request: Request, table: TableAndType, config: BatchConfig) -> Any:
    """Adds the file of a form (json, csv or parquet) as a segment. Responds once its rows can be queried."""
    context = context_of(request)
    file_request = await run_in_threadpool(_wanted, context, table, config)
    file = await context.uploads.receive(request, context.home.home)
    return await _ingest(context, file_request, file, uploaded=True)


@router.post("/ingestFromURI", summary="Add a file of the server's machine as a segment", responses=_DONE)
@needs(Right.OPERATE)
async def ingest_uri(
    request: Request,
    table: TableAndType,
    config: BatchConfig,
    uri: Annotated[
        str, Query(alias="sourceURIStr", max_length=_TEXT_MAX, examples=["file:///data/orders/corrected/orders.json"])
    ],
) -> Any:
    """Adds a file on the server's machine (`file:///...`) as a segment. Responds once its rows can be queried."""
    context = context_of(request)
    file_request = await run_in_threadpool(_wanted, context, table, config)
    file = await run_in_threadpool(_local_file, uri, rules_of(context.home.settings, source_of("http")))
    return await _ingest(context, file_request, file, uploaded=False)


async def _ingest(context: ServerContext, wanted: _FileRequest, file: Path, uploaded: bool) -> dict[str, Any]:
    arguments = {"spec": wanted.spec(file), "source": "ingest", "folder": "/", "variables": {}, "append": True}
    run = None
    try:
        run = await run_in_threadpool(context.queue, "job_run", arguments, UPLOAD if uploaded else "http")
        run = await context.ended(run)
    finally:
        # An unfinished run still reads the file; the file is swept later.
        if uploaded and (run is None or not run.incomplete):
            await remove_upload(file)
    report = context.report(run)
    names = ", ".join(report["segments_to"])
    return {
        "status": f"Successfully ingested file into table: {wanted.table}_OFFLINE as segment: {names}",
        "sentence": report["sentence"],
        "run": run.id,
    }


def _wanted(context: ServerContext, table: str, config: str) -> _FileRequest:
    if half_in(table) is not Half.OFFLINE:
        raise UsageError(f"tableNameWithType: '{table}' does not end in _OFFLINE; files go to that half only.")
    target = path_table(context, table).table
    try:
        batch_config = document(config)
    except SpecError as error:
        raise UsageError(f"batchConfigMapStr: {str(error).removeprefix('body: ')}") from error
    for key, value in batch_config.items():
        if not isinstance(value, str):
            raise UsageError(f"batchConfigMapStr: {key}: {str(value)[:100]} is not a text.")
    texts = {key: str(value) for key, value in batch_config.items()}
    data_format = texts.get("inputFormat", "").lower()
    if data_format not in DATA_FORMATS:
        near = suggestion(data_format, DATA_FORMATS)
        raise UsageError(
            f"batchConfigMapStr: inputFormat: '{data_format[:100]}' is not known.{near} "
            f"Known are: {', '.join(DATA_FORMATS)}."
        )
    # As in Pinot, the name holds the time of the request: a second file of the same times must not replace the first.
    naming = {_POSTFIX: str(wall_clock_ms()), **_below(texts, _NAMING)}
    name_type = texts.get(_NAME_TYPE, "simple")
    if name_type == "fixed":
        naming.pop(_POSTFIX)
    return _FileRequest(target.name, data_format, _below(texts, _READER), name_type, naming)


def _below(texts: dict[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in texts.items() if key.startswith(prefix)}


def _local_file(uri: str, rules: InputRules) -> Path:
    try:
        parts = urlsplit(uri)
    except ValueError as error:
        raise UsageError(f"sourceURIStr: '{uri[:200]}' is no URI: {error}.") from error
    if parts.scheme != "file" or parts.netloc not in {"", "localhost"}:
        raise UsageError(
            f"sourceURIStr: '{uri[:200]}' cannot be read: only files of the server's machine are, as file:///data/a.json",
            hint="Upload it: POST /ingestFromFile",
        )
    path = Path(unquote(parts.path))
    try:
        rules.check(path, uri)
        if path.is_file():
            return path.resolve()
    except (ValueError, OSError) as error:
        raise UsageError(f"sourceURIStr: '{uri[:200]}' is no path: {error}.") from error
    raise NotFoundError(f"File '{str(path)[:200]}' does not exist on the server's machine.")
