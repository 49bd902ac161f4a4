"""A real server of Azure's Blob protocol on a free port of this machine: Azurite, with what it stores in memory."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from email.utils import formatdate
from pathlib import Path
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from tests.watchdog import watch

COMMAND = shutil.which("azurite-blob")
ACCOUNT = "tester"
KEY = base64.b64encode(b"a-secret-of-tests").decode()
_VERSION = "2018-11-09"
_STARTS_WITHIN_S = 60


class AzureServer(NamedTuple):
    """`options` are the storage options of somebody who may write. Its containers are its buckets."""

    address: str
    kind: str = "az"

    @property
    def environment(self) -> dict[str, str]:
        """The variables of somebody who may write."""
        return self.environment_at(self.address)

    def environment_at(self, address: str) -> dict[str, str]:
        """These variables with another address, as of a proxy."""
        return {
            "AZURE_STORAGE_ENDPOINT": f"http://{address}/{ACCOUNT}",
            "AZURE_STORAGE_ACCOUNT_NAME": ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURITE_BLOB_STORAGE_URL": f"http://{self.address}",  # for delta-rs, see `options`
        }  # fmt: skip

    @property
    def options(self) -> dict[str, str]:
        """As of the emulator: delta-rs would believe a list that begins with a key, which Azurite does not know."""
        return {
            "azure_storage_use_emulator": "true",
            "azure_storage_account_name": ACCOUNT, "azure_storage_account_key": KEY,
        }  # fmt: skip

    def create_bucket(self, name: str) -> None:
        connection = http.client.HTTPConnection(self.address, timeout=10)
        try:
            target = f"/{ACCOUNT}/{name}?restype=container"
            headers = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION, "content-length": "0"}
            connection.request("PUT", target, b"", signed("PUT", target, headers, b""))
            assert connection.getresponse().status == 201
        finally:
            connection.close()


def signed(method: str, target: str, headers: dict[str, str], body: bytes) -> dict[str, str]:
    """The headers of a request with the signature that Azure wants of them (Shared Key)."""
    path, _, query = target.partition("?")
    others = {name: value for name, value in headers.items() if name != "authorization"}
    date = "" if "x-ms-date" in others else "date"
    names = ("content-encoding", "content-language", "", "content-md5", "content-type", date, "if-modified-since",
             "if-match", "if-none-match", "if-unmodified-since", "range")  # fmt: skip
    values = [str(len(body)) if position == 2 and body else others.get(name, "") for position, name in enumerate(names)]
    own = sorted(f"{name}:{value}" for name, value in others.items() if name.startswith("x-ms-"))
    parameters = sorted(f"{name}:{value}" for name, value in parse_qsl(query, keep_blank_values=True))
    text = "\n".join([method, *values, *own, f"/{ACCOUNT}{path}", *parameters])
    return {**others, "authorization": f"SharedKey {ACCOUNT}:{_digest(text)}"}


def sas_token(container: str, permissions: str = "racwdl", hours: float = 1) -> str:
    """A shared access signature of a container, which is over after some hours."""
    expiry = (datetime.now(UTC) + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")
    resource = f"/blob/{ACCOUNT}/{container}"
    fields = [permissions, "", expiry, resource, "", "", "https,http", _VERSION, "c", "", "", "", "", "", ""]
    parameters = {"sv": _VERSION, "sr": "c", "sp": permissions, "se": expiry, "spr": "https,http"}
    return urlencode({**parameters, "sig": _digest("\n".join(fields))})


def _digest(text: str) -> str:
    return base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()


@contextmanager
def azure_server(folder: Path) -> Iterator[AzureServer]:
    """Runs it until the end of the block; its log lies in the folder."""
    assert COMMAND is not None
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        COMMAND, "--blobHost", "127.0.0.1", "--blobPort", str(port), "--inMemoryPersistence", "--silent",
        "--disableTelemetry",
    ]  # fmt: skip
    with (folder / "azurite.log").open("w") as log:
        process = subprocess.Popen(
            command, cwd=folder, env={"PATH": "/usr/bin:/bin", "AZURITE_ACCOUNTS": f"{ACCOUNT}:{KEY}"},
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    watch(process)
    try:
        _await(process, port)
        yield AzureServer(f"127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(timeout=10)


def _await(process: subprocess.Popen[bytes], port: int) -> None:
    until = time.monotonic() + _STARTS_WITHIN_S
    while time.monotonic() < until and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("Azurite does not start")
