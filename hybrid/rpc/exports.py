"""An export that a server answers: its rows come as Arrow's stream and are written here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from hybrid.errors import MachineError
from hybrid.files.results.output_file import OutputStream
from hybrid.files.results.result_format import ResultFormat
from hybrid.files.results.result_sink import ExportReport, ResultSink, abandoned_on_error
from hybrid.progress import Progress
from hybrid.rpc.client import Client, error_of

if TYPE_CHECKING:
    from http.client import HTTPResponse

    from hybrid.query.spool import BatchSink

PATH = "/query/export"


def export_from(
    client: Client, statement: Mapping[str, Any], output: OutputStream, fmt: ResultFormat, progress: Progress
) -> ExportReport:
    """Writes the rows of a statement that the server answers to an output. Raises the server's error.

    `statement` has its arguments as the verb `query` takes them.
    """
    names = {"as_of": "asOf"}
    body = {names.get(name, name): value for name, value in statement.items() if value is not None}
    with abandoned_on_error(ResultSink(output, fmt, progress)) as sink:
        with client.stream(PATH, body, ResultFormat.ARROW.media_type) as response:
            _receive(client, response, sink)
        return sink.complete()


def _receive(client: Client, response: HTTPResponse, sink: BatchSink) -> None:
    """Passes the batches of a response on. MachineError when it ends too early."""
    import pyarrow as pa

    from hybrid.files.results.result_writers import ERROR_KEY

    revision = unquote(response.headers.get("X-Hybrid-Revision", ""))
    warnings = unquote(response.headers.get("X-Hybrid-Warnings", "")).splitlines()
    try:
        with client.reading():
            reader = pa.ipc.open_stream(_Readable(response))
        sink.begin(reader.schema.remove_metadata(), revision, warnings)
        while True:
            with client.reading():
                found = _next_batch(reader)
            if found is None:
                break
            batch, error = found
            if error is not None and ERROR_KEY in error:
                raise error_of(json.loads(error[ERROR_KEY]))
            sink.take(batch)
        with client.reading():
            response.read()  # the end of the response says that it is whole
    except pa.ArrowInvalid as error:
        raise MachineError(f"The server's answer is no stream of Arrow: {error}.", hint="hybrid logs") from error


def _next_batch(reader: Any) -> Any:
    """A batch and its metadata; None at the end."""
    try:
        return reader.read_next_batch_with_custom_metadata()
    except StopIteration:
        return None


class _Readable:
    """A response as Arrow reads it: it stays open at its end."""

    closed = False

    def __init__(self, response: HTTPResponse) -> None:
        self._response = response

    def read(self, size: int = -1) -> bytes:
        return self._response.read(None if size < 0 else size)

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        pass
