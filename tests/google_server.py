"""A server of Google's XML API on a free port of this machine: fake-gcs-server behind a translator.

fake-gcs-server 1.56.1 answers a plain `PUT /bucket/name` of the XML API with 400 "invalid uploadType", and has neither
uploads in parts there nor the start of a list; obstore writes by the XML API alone. So the translator below takes that
API, as https://cloud.google.com/storage/docs/xml-api/overview describes it, and asks the JSON API. Conditions
(`ifGenerationMatch`), generations, lists and bytes are kept by fake-gcs-server; names of errors are the translator's.
"""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode
from xml.sax.saxutils import escape

from tests.store.store_proxy import Answer, Request, Send, store_proxy
from tests.watchdog import watch

COMMAND = shutil.which("fake-gcs-server")
TOKEN = "a-secret-of-tests"
_TOKENS = {f"Bearer {TOKEN}", "Bearer", ""}  # without one: delta-rs, which knows no token of its own
_NAMES = {401: "AuthenticationRequired", 412: "PreconditionFailed"}


class GoogleServer(NamedTuple):
    """`options` are the storage options of somebody who may write; `address` is the translator's."""

    address: str
    behind: str
    kind: str = "gs"

    @property
    def environment(self) -> dict[str, str]:
        """The variables of somebody who may write."""
        return self.environment_at(self.address)

    def environment_at(self, address: str) -> dict[str, str]:
        """These variables with another address, as of a proxy."""
        return {"GOOGLE_BASE_URL": f"http://{address}", "GOOGLE_BEARER_TOKEN": TOKEN}

    @property
    def options(self) -> dict[str, str]:
        key = {"gcs_base_url": f"http://{self.address}", "disable_oauth": True, "client_email": "", "private_key": "",
               "private_key_id": ""}  # fmt: skip
        return {"google_service_account_key": json.dumps(key), "allow_http": "true"}

    def create_bucket(self, name: str, *, keeps_versions: bool = False) -> None:
        body = json.dumps({"name": name, "versioning": {"enabled": keeps_versions}})
        connection = http.client.HTTPConnection(self.behind, timeout=10)
        try:
            connection.request("POST", "/storage/v1/b", body, {"content-type": "application/json"})
            assert connection.getresponse().status == 200
        finally:
            connection.close()


@dataclass
class _Translator:
    """Answers requests of the XML API by what the JSON API of fake-gcs-server says."""

    behind: str
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)

    def answer(self, request: Request, pass_on: Send) -> Answer:
        def send(asked: Request) -> Answer:
            return pass_on(replace(asked, headers={**asked.headers, "host": self.behind}))

        path, _, query = request.target.partition("?")
        bucket, _, name = path.lstrip("/").partition("/")
        parameters = dict(parse_qsl(query, keep_blank_values=True))
        if request.headers.get("authorization", "").strip() not in _TOKENS:
            answer = _error(401)
        elif not name:
            answer = self._list(bucket, parameters, send)
        elif parameters.keys() & {"uploads", "uploadId"}:
            answer = self._part(request, bucket, unquote(name), parameters, send)
        elif request.method == "PUT":
            condition = request.headers.get("x-goog-if-generation-match")
            answer = self._put(bucket, unquote(name), request.body, condition, send)
        else:
            answer = self._object(request, bucket, unquote(name), parameters, send)
        return Answer(answer.status, {**answer.headers, "Date": formatdate(usegmt=True)}, answer.body)

    def _object(self, request: Request, bucket: str, name: str, parameters: dict[str, str], send: Send) -> Answer:
        """GET, HEAD and DELETE."""
        is_read = request.method in {"GET", "HEAD"}
        more = {"alt": "media", **{key: value for key, value in parameters.items() if key == "generation"}}
        target = f"{'/download' if is_read else ''}/storage/v1/b/{bucket}/o/{quote(name, safe='')}"
        headers = {key: value for key, value in request.headers.items() if key == "range"}
        found = send(Request(request.method, f"{target}?{urlencode(more)}" if is_read else target, headers, b""))
        if found.status >= 400:
            return self._refusal(found, bucket, send)
        return found if is_read else Answer(204, {}, b"")

    def _put(self, bucket: str, name: str, body: bytes, condition: str | None, send: Send) -> Answer:
        parameters = {"uploadType": "media", "name": name}
        if condition is not None:
            parameters["ifGenerationMatch"] = condition
        target = f"/upload/storage/v1/b/{bucket}/o?{urlencode(parameters)}"
        made = send(Request("POST", target, {"content-type": "application/octet-stream",
                                             "content-length": str(len(body))}, body))  # fmt: skip
        if made.status != 200:
            return self._refusal(made, bucket, send)
        meta = json.loads(made.body)
        return Answer(200, {"ETag": f'"{meta["etag"]}"', "x-goog-generation": meta["generation"]}, b"")

    def _part(self, request: Request, bucket: str, name: str, parameters: dict[str, str], send: Send) -> Answer:
        """An upload in parts: its begin, a part, its end, or that it is given up."""
        if "uploads" in parameters:
            if self._is_missing(bucket, send):
                return _error(404, "NoSuchBucket")
            key = uuid.uuid4().hex
            self.uploads[key] = {}
            return _xml(f"<InitiateMultipartUploadResult><UploadId>{key}</UploadId></InitiateMultipartUploadResult>")
        if request.method == "PUT":
            self.uploads[parameters["uploadId"]][int(parameters["partNumber"])] = request.body
            return Answer(200, {"ETag": f'"{parameters["partNumber"]}"'}, b"")
        parts = self.uploads.pop(parameters["uploadId"])
        if request.method == "DELETE":
            return Answer(204, {}, b"")
        made = self._put(bucket, name, b"".join(parts[number] for number in sorted(parts)), None, send)
        if made.status != 200:
            return made
        etag = escape(made.headers["ETag"])
        answer = _xml(f"<CompleteMultipartUploadResult><ETag>{etag}</ETag></CompleteMultipartUploadResult>")
        return Answer(200, {**answer.headers, "x-goog-generation": made.headers["x-goog-generation"]}, answer.body)

    def _list(self, bucket: str, parameters: dict[str, str], send: Send) -> Answer:
        after = parameters.get("start-after", "")
        query = {key: parameters[key] for key in ("prefix", "delimiter") if key in parameters}
        objects, prefixes, token = list[dict[str, Any]](), list[str](), ""
        while True:
            more = {"startOffset": after} if after else {}
            asked = urlencode({**query, **more, **({"pageToken": token} if token else {})})
            found = send(Request("GET", f"/storage/v1/b/{bucket}/o?{asked}", {}, b""))
            if found.status != 200:
                return self._refusal(found, bucket, send)
            page = json.loads(found.body)
            objects += page.get("items") or []
            prefixes += page.get("prefixes") or []
            token = page.get("nextPageToken") or ""
            if not token:
                break
        contents = "".join(
            f"<Contents><Key>{escape(item['name'])}</Key><Size>{item['size']}</Size>"
            f"<LastModified>{item['updated']}</LastModified><ETag>{escape(item['etag'])}</ETag></Contents>"
            for item in objects
            if item["name"] > after
        )
        folders = "".join(f"<CommonPrefixes><Prefix>{escape(name)}</Prefix></CommonPrefixes>" for name in prefixes)
        return _xml(f"<ListBucketResult>{contents}{folders}</ListBucketResult>")

    def _refusal(self, answer: Answer, bucket: str, send: Send) -> Answer:
        if answer.status != 404:
            return _error(answer.status)
        return _error(404, "NoSuchBucket" if self._is_missing(bucket, send) else "NoSuchKey")

    @staticmethod
    def _is_missing(bucket: str, send: Send) -> bool:
        return send(Request("GET", f"/storage/v1/b/{bucket}", {}, b"")).status == 404


def _xml(text: str) -> Answer:
    return Answer(200, {"Content-Type": "application/xml"}, f"<?xml version='1.0' encoding='UTF-8'?>{text}".encode())


def _error(status: int, code: str = "") -> Answer:
    name = code or _NAMES.get(status, "")
    body = f"<?xml version='1.0' encoding='UTF-8'?><Error><Code>{name}</Code></Error>" if name else ""
    return Answer(status, {"Content-Type": "application/xml"}, body.encode())


@contextmanager
def google_server(folder: Path) -> Iterator[GoogleServer]:
    """Runs both until the end of the block; the log lies in the folder."""
    assert COMMAND is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder.mkdir(parents=True, exist_ok=True)
    behind = f"127.0.0.1:{port}"
    command = [COMMAND, "-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory",
               "-public-host", behind]  # fmt: skip
    with (folder / "fake-gcs-server.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    watch(process)
    try:
        _await(process, port)
        with store_proxy(GoogleServer(behind, behind)) as translator:
            translator.always = _Translator(behind).answer
            translator.is_remembering = False
            yield GoogleServer(translator.address, behind)
    finally:
        process.terminate()
        process.wait(timeout=10)


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            assert process.poll() is None
            time.sleep(0.1)
    raise AssertionError("fake-gcs-server does not start")
