"""Ways to sign in to Azure, and what is said of one that does not work, against Azurite."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hybrid.errors import SpecError, StoreError
from hybrid.store.conditional_put import PutOutcome
from hybrid.store.store_backend import StoreTuning
from hybrid.store.store_client import StoreClient, open_store
from hybrid.store.store_faults import Fault
from tests.azure_server import sas_token
from tests.store.store_proxy import Answer, StoreProxy
from tests.store_servers import ONLY_AZURE, StoreServer

pytestmark = [pytest.mark.process, ONLY_AZURE]

URL = "az://bucket/access"
HASTY = StoreTuning(connect_s=1.0, request_s=5.0, patience_s=0.2)


@pytest.fixture
def signed_in(server: StoreServer, environment: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment with account and key."""
    for name, value in server.environment.items():
        environment.setenv(name, value)
    return environment


def faults(client: StoreClient) -> set[str | None]:
    """The kinds of failures of all that is asked of a store."""
    found = set[str | None]()
    attempts = [
        lambda: client.get("x"), lambda: client.create("x", b"x"), lambda: client.replace("x", b"x", "1"),
        lambda: client.upload("x", b"x"), lambda: client.delete("x"), lambda: client.list_below(),
    ]  # fmt: skip
    for attempt in attempts:
        with pytest.raises(StoreError) as caught:
            attempt()
        found.add(caught.value.fault)
        assert caught.value.hint
    return found


def sign_in_by(environment: pytest.MonkeyPatch, signature: str) -> None:
    environment.delenv("AZURE_STORAGE_ACCOUNT_KEY")
    environment.setenv("AZURE_STORAGE_SAS_TOKEN", signature)


def test_by_key_signature_and_emulator(signed_in: pytest.MonkeyPatch, server: StoreServer) -> None:
    made = open_store(URL, HASTY).create("by-key", b"1")
    assert made.outcome is PutOutcome.MADE
    key = server.environment["AZURE_STORAGE_ACCOUNT_KEY"]
    sign_in_by(signed_in, sas_token("bucket"))
    client = open_store(URL, HASTY)
    assert client.replace("by-key", b"2", made.etag or "").outcome is PutOutcome.MADE
    assert client.size_of("by-key") == 1
    client.upload("by-signature", b"3")
    client.delete("by-signature")
    signed_in.delenv("AZURE_STORAGE_SAS_TOKEN")
    signed_in.delenv("AZURE_STORAGE_ENDPOINT")
    signed_in.setenv("AZURE_STORAGE_USE_EMULATOR", "true")
    signed_in.setenv("AZURITE_BLOB_STORAGE_URL", f"http://{server.address}")
    signed_in.setenv("AZURE_STORAGE_ACCOUNT_KEY", key)
    client = open_store(URL, HASTY)
    content = client.get("by-key")
    assert content is not None and content.data == b"2"
    assert abs(client.time().ahead_s) < 30
    client.delete("by-key")
    assert client.list_below() == []


def test_a_wrong_key(signed_in: pytest.MonkeyPatch) -> None:
    signed_in.setenv("AZURE_STORAGE_ACCOUNT_KEY", "d3Jvbmc=")
    assert faults(open_store(URL, HASTY)) == {Fault.CREDENTIALS}


def test_a_signature_that_is_over(signed_in: pytest.MonkeyPatch) -> None:
    """Azurite refuses it without Azure's sentence why: see the next test for that."""
    sign_in_by(signed_in, sas_token("bucket", hours=-1))
    assert faults(open_store(URL, HASTY)) == {Fault.CREDENTIALS}


@pytest.mark.parametrize(
    ("detail", "fault", "words"),
    [
        ("Signature not valid in the specified time frame: Start [..] - Expiry [..] - Current [..]", Fault.EXPIRED,
         "The token or the shared access signature has expired"),
        ("Request date header too old: 'Sat, 28 Nov 2026 00:00:00 GMT'", Fault.CLOCK, "this machine's clock is wrong"),
        ("The MAC signature found in the HTTP request 'a-secret' is not the same", Fault.CREDENTIALS,
         "does not accept the keys"),
    ],
)  # fmt: skip
def test_what_azure_says_of_a_signature(proxy: StoreProxy, detail: str, fault: Fault, words: str) -> None:
    body = (
        "<Error><Code>AuthenticationFailed</Code><Message>Server failed to authenticate the request.</Message>"
        f"<AuthenticationErrorDetail>{detail}</AuthenticationErrorDetail></Error>"
    )
    proxy.always = lambda request, send: Answer(403, {"Content-Type": "application/xml"}, body.encode())
    client = open_store(URL, HASTY)
    assert faults(client) == {fault}
    with pytest.raises(StoreError, match=words) as caught:
        client.get("x")
    assert "a-secret" not in str(caught.value)


def test_a_signature_without_rights(signed_in: pytest.MonkeyPatch) -> None:
    open_store(URL, HASTY).upload("x", b"x")
    sign_in_by(signed_in, sas_token("bucket", "rl"))
    client = open_store(URL, HASTY)
    assert client.get("x") is not None
    for attempt in (lambda: client.create("y", b"y"), lambda: client.upload("y", b"y"), lambda: client.delete("x")):
        with pytest.raises(StoreError, match="does not permit it") as caught:
            attempt()
        assert caught.value.fault == Fault.PERMISSION


def test_no_keys(signed_in: pytest.MonkeyPatch) -> None:
    """obstore asks the machine for its identity then; here nothing answers at that address."""
    signed_in.delenv("AZURE_STORAGE_ACCOUNT_KEY")
    signed_in.setenv("AZURE_MSI_ENDPOINT", "http://127.0.0.1:1/metadata/identity/oauth2/token")
    client = open_store(URL, HASTY)
    assert faults(client) == {Fault.CREDENTIALS}
    assert abs(client.time().ahead_s) < 30, "the time needs no keys"


def test_an_account_that_is_not_there(signed_in: pytest.MonkeyPatch) -> None:
    signed_in.delenv("AZURE_STORAGE_ENDPOINT")
    signed_in.setenv("AZURE_STORAGE_ENDPOINT", "https://nobody.invalid")
    with pytest.raises(StoreError, match="does not answer") as caught:
        open_store(URL, HASTY).get("x")
    assert caught.value.fault == Fault.UNREACHABLE and "AZURE_STORAGE_ACCOUNT_NAME" in (caught.value.hint or "")


def test_a_service_that_cannot_begin_a_list_with_a_key(proxy: StoreProxy) -> None:
    """Services before 2026 list everything then, as Azurite does."""
    client = open_store(f"{URL}/from", replace(HASTY, patience_s=5.0))
    for number in range(3):
        client.upload(f"log/{number}", b"x")
    assert [item.key for item in client.list_below("log", offset="log/0")] == ["log/1", "log/2"]
    asked: list[Any] = [request.target for request in proxy.seen if "comp=list" in request.target]
    assert len(asked) == 1 and "startFrom=access%2Ffrom%2Flog%2F0" in asked[0]


def test_a_name_that_azure_would_change_is_refused(proxy: StoreProxy) -> None:

    with pytest.raises(SpecError, match="ends with a dot"):
        open_store(URL, HASTY).create("a./b", b"x")
    assert proxy.seen == []
