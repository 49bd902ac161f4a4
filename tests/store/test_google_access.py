"""Ways to sign in to Google, and what is said of one that does not work, by the translator before fake-gcs-server."""

from __future__ import annotations

from pathlib import Path

import pytest

from hybrid.errors import SpecError, StoreError
from hybrid.store.conditional_put import PutOutcome
from hybrid.store.store_backend import StoreTuning
from hybrid.store.store_client import open_store
from hybrid.store.store_faults import Fault
from tests.google_server import GoogleServer
from tests.store.store_proxy import StoreProxy
from tests.store_servers import ONLY_GOOGLE

pytestmark = [pytest.mark.process, ONLY_GOOGLE]

URL = "gs://bucket/access"
HASTY = StoreTuning(connect_s=1.0, request_s=5.0, patience_s=0.2)


@pytest.mark.parametrize("variable", ["GOOGLE_SERVICE_ACCOUNT", "GOOGLE_SERVICE_ACCOUNT_KEY"])
def test_by_a_key_that_names_the_endpoint(
    server: GoogleServer, environment: pytest.MonkeyPatch, tmp_path: Path, variable: str
) -> None:
    key, path = server.options["google_service_account_key"], tmp_path / "key.json"
    path.write_text(key, encoding="utf-8")
    environment.setenv(variable, key if variable.endswith("KEY") else str(path))
    client = open_store(f"{URL}/{variable.lower()}", HASTY)
    made = client.create("x", b"1")
    assert made.outcome is PutOutcome.MADE
    assert client.replace("x", b"2", made.etag or "").outcome is PutOutcome.MADE
    assert abs(client.time().ahead_s) < 30


def test_a_token_that_is_not_accepted(proxy: StoreProxy, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("GOOGLE_BEARER_TOKEN", "wrong")
    client = open_store(URL, HASTY)
    for attempt in (lambda: client.get("x"), lambda: client.create("x", b"x"), lambda: client.delete("x")):
        with pytest.raises(StoreError, match="does not accept the keys") as caught:
            attempt()
        assert caught.value.fault == Fault.CREDENTIALS and "wrong" not in str(caught.value)
        assert "GOOGLE_SERVICE_ACCOUNT" in (caught.value.hint or "")


def test_a_condition_names_the_generation(proxy: StoreProxy) -> None:
    """An object of the same bytes has the same ETag, and is another one."""
    client = open_store(f"{URL}/generation", HASTY)
    first = client.create("x", b"1")
    client.delete("x")
    second = client.create("x", b"1")
    assert first.etag and second.etag and first.etag != second.etag and first.etag.isdecimal()
    assert client.replace("x", b"2", first.etag).outcome is PutOutcome.CHANGED
    puts = [request.headers.get("x-goog-if-generation-match") for request in proxy.seen if request.method == "PUT"]
    assert puts == ["0", "0", first.etag]
    assert client.size_of("x") == 1


def test_keys_that_cannot_be(environment: pytest.MonkeyPatch, server: GoogleServer) -> None:
    environment.setenv("GOOGLE_SERVICE_ACCOUNT", "/nowhere/key.json")
    environment.setenv("GOOGLE_SERVICE_ACCOUNT_KEY", "{}")
    with pytest.raises(SpecError, match="a service account's file and its key are both named"):
        open_store(URL)
