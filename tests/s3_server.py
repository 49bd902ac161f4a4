"""A real S3 server on a free port of this machine: versitygw over a folder."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.watchdog import watch

COMMAND = shutil.which("versitygw")
_KEY, _SECRET, _REGION = "tester", "a-secret-of-tests", "us-east-1"
_EMPTY = hashlib.sha256(b"").hexdigest()


needs_s3 = pytest.mark.skipif(
    COMMAND is None, reason="versitygw is not there (go install github.com/versity/versitygw/...)"
)


class S3Server(NamedTuple):
    """`options` are the storage options of somebody who may write."""

    address: str
    process: S3Process
    kind: str = "s3"

    @property
    def endpoint(self) -> dict[str, str]:
        """What everybody has to say."""
        return {"aws_endpoint": f"http://{self.address}", "aws_allow_http": "true", "aws_region": _REGION}

    @property
    def environment(self) -> dict[str, str]:
        """The variables of somebody who may write."""
        return self.environment_at(self.address)

    def environment_at(self, address: str) -> dict[str, str]:
        """These variables with another address, as of a proxy."""
        return {"AWS_ENDPOINT_URL": f"http://{address}", "AWS_REGION": _REGION,
                "AWS_ACCESS_KEY_ID": _KEY, "AWS_SECRET_ACCESS_KEY": _SECRET}  # fmt: skip

    @property
    def options(self) -> dict[str, str]:
        return {**self.endpoint, "aws_access_key_id": _KEY, "aws_secret_access_key": _SECRET,
                "aws_virtual_hosted_style_request": "false", "aws_conditional_put": "etag"}  # fmt: skip

    def create_public_bucket(self, name: str) -> None:
        """A bucket that anybody may read."""
        statement = {
            "Effect": "Allow", "Principal": "*", "Action": ["s3:GetObject", "s3:ListBucket"],
            "Resource": [f"arn:aws:s3:::{name}", f"arn:aws:s3:::{name}/*"],
        }  # fmt: skip
        self.create_bucket(name)
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]}).encode()
        assert self._put(f"/{name}", "policy=", policy) in {200, 204}

    def create_bucket(self, name: str) -> None:
        assert self._put(f"/{name}", "", b"") == 200

    def keep_versions(self, name: str, status: str = "Enabled") -> None:
        """Needs a server with `--versioning-dir`."""
        state = f"<VersioningConfiguration><Status>{status}</Status></VersioningConfiguration>"
        assert self._put(f"/{name}", "versioning=", state.encode()) == 200

    def create_locked_bucket(self, name: str, days: int) -> None:
        """A bucket that keeps each new object for some days. Needs a server with `--versioning-dir`."""
        lock = {"x-amz-bucket-object-lock-enabled": "true"}
        assert self.send("PUT", f"/{name}", "", b"", lock)[0] == 200
        rule = f"<Rule><DefaultRetention><Mode>GOVERNANCE</Mode><Days>{days}</Days></DefaultRetention></Rule>"
        rules = f"<ObjectLockEnabled>Enabled</ObjectLockEnabled>{rule}"
        body = f"<ObjectLockConfiguration>{rules}</ObjectLockConfiguration>".encode()
        digest = {"content-md5": base64.b64encode(hashlib.md5(body, usedforsecurity=False).digest()).decode()}
        answer = self.send("PUT", f"/{name}", "object-lock=", body, digest)
        assert answer[0] == 200, answer

    def begin_upload(self, path: str) -> None:
        """An upload in parts that does not end; `path` is /bucket/key."""
        status, _ = self.send("POST", path, "uploads=", b"")
        assert status == 200

    def _put(self, path: str, query: str, body: bytes) -> int:
        return self.send("PUT", path, query, body)[0]

    def send(
        self, method: str, path: str, query: str, body: bytes, more: dict[str, str] | None = None
    ) -> tuple[int, bytes]:
        """Status and body of the answer to a signed request; `more` are further headers."""
        connection = http.client.HTTPConnection(self.address, timeout=10)
        try:
            headers = signed(method, self.address, path, query, body, more or {})
            connection.request(method, f"{path}?{query}" if query else path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


def signed(
    method: str, host: str, path: str, query: str, body: bytes, more: dict[str, str] | None = None
) -> dict[str, str]:
    """The headers of a request that is signed as AWS wants it (Signature Version 4)."""
    now = datetime.now(UTC)
    stamp, day, digest = now.strftime("%Y%m%dT%H%M%SZ"), now.strftime("%Y%m%d"), hashlib.sha256(body).hexdigest()
    headers = dict(sorted({"host": host, "x-amz-content-sha256": digest, "x-amz-date": stamp, **(more or {})}.items()))
    names = ";".join(headers)
    canonical = "\n".join([method, path, query, *(f"{k}:{v}" for k, v in headers.items()), "", names, digest])
    scope = f"{day}/{_REGION}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{_SECRET}".encode()
    for part in (day, _REGION, "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    credential = f"AWS4-HMAC-SHA256 Credential={_KEY}/{scope}, SignedHeaders={names}, Signature={signature}"
    return {**headers, "authorization": credential}


class S3Process:
    """The process of a server on one address; it can be stopped and started again with what it has stored."""

    def __init__(self, address: str, folder: Path, versions: Path | None) -> None:
        self._address, self._log = address, folder.parent / "s3.log"
        options = ["--port", address, "--access", _KEY, "--secret", _SECRET, "--region", _REGION, "posix"]
        kept = ["--versioning-dir", str(versions)] if versions is not None else []
        assert COMMAND is not None
        self.command = [COMMAND, *options, *kept, str(folder)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("a") as log:
            self._process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        watch(self._process)
        _await(self._address)

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(timeout=10)


@contextmanager
def s3_server(folder: Path, versions: Path | None = None) -> Iterator[S3Server]:
    """Runs it over a folder until the end of the block. Buckets can keep versions if there is a folder for them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    folder.mkdir(parents=True)
    process = S3Process(address, folder, versions)
    process.start()
    try:
        yield S3Server(address, process)
    finally:
        process.stop()


def _await(address: str) -> None:
    host, _, port = address.partition(":")
    for _ in range(100):
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the S3 server does not start")
