"""The client against real servers of each protocol, by a proxy that loses, repeats, delays and refuses."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from hybrid.errors import StoreError
from hybrid.store.conditional_put import PutOutcome
from hybrid.store.store_backend import StoreTuning
from hybrid.store.store_client import PART_BYTES, StoreClient, open_store
from hybrid.store.store_faults import Fault
from tests.store.store_proxy import (
    CONDITIONS,
    StoreProxy,
    delay,
    lose_answer,
    lose_request,
    refuse,
    repeat,
    shift_clock,
)
from tests.store_servers import ONLY_S3, StoreServer

pytestmark = [pytest.mark.process]

HASTY = StoreTuning(connect_s=1.0, request_s=5.0, patience_s=0.2)
PATIENT = StoreTuning(connect_s=5.0, request_s=5.0, patience_s=30.0)
IMPATIENT = StoreTuning(connect_s=5.0, request_s=0.25, patience_s=30.0)
TOO_LONG_S = 0.5


@pytest.fixture
def url(server: StoreServer) -> str:
    """A prefix of its own for each test: late writes of others arrive elsewhere."""
    return f"{server.kind}://bucket/{uuid4()}"


@pytest.fixture
def client(proxy: StoreProxy, url: str) -> StoreClient:
    return open_store(url, PATIENT)


@pytest.fixture
def impatient(proxy: StoreProxy, url: str) -> StoreClient:
    """Takes an answer for lost after a quarter of a second."""
    return open_store(url, IMPATIENT)


def hasty(url: str) -> StoreClient:
    return open_store(url, HASTY)


@pytest.mark.parametrize("key", ["a", "a b (2)", "a%20b", "ä/x=1%2F/é", "k#?&+"])
def test_an_object_from_beginning_to_end(client: StoreClient, key: str) -> None:
    key = f"round/{key}"
    assert client.get(key) is None
    made = client.create(key, b"one")
    assert made.outcome is PutOutcome.MADE and made.etag is not None and not made.was_silent
    found = client.get(key)
    assert found is not None and (found.data, found.etag) == (b"one", made.etag) and found.modified.tzinfo is not None
    existing = client.create(key, b"two")
    assert existing.outcome is PutOutcome.EXISTS and existing.present == found
    replaced = client.replace(key, b"two", made.etag)
    assert replaced.outcome is PutOutcome.MADE and replaced.etag not in {None, made.etag}
    late = client.replace(key, b"three", made.etag)
    assert late.outcome is PutOutcome.CHANGED and late.present is not None and late.present.data == b"two"
    assert [listed.key for listed in client.list_below("round")] == [key]
    client.delete(key)
    client.delete(key)
    assert client.get(key) is None
    gone = client.replace(key, b"four", made.etag)
    assert gone.outcome is PutOutcome.CHANGED and gone.present is None


def test_lists(client: StoreClient) -> None:
    for key in ("t/_log/01", "t/_log/02", "t/_log/03", "t/top", "tt/other"):
        client.create(key, key.encode())
    assert [listed.key for listed in client.list_below("t/_log", offset="t/_log/01")] == ["t/_log/02", "t/_log/03"]
    folder = client.list_folder("t")
    assert folder.folders == ("t/_log",) and [(one.key, one.size) for one in folder.objects] == [("t/top", 5)]
    assert [listed.key for listed in client.list_below("nothing")] == []
    assert {listed.key for listed in client.list_below()} >= {"t/top", "tt/other"}


def test_objects_of_several_parts(client: StoreClient) -> None:
    data = bytes(range(256)) * 4096 * 6
    assert len(data) > PART_BYTES
    client.upload("large", data)
    found = client.get("large")
    assert found is not None and found.data == data


@pytest.mark.parametrize("at", [0, 1], ids=["before the first part", "before the second"])
@pytest.mark.parametrize("size", [1, 9 << 20], ids=["shorter", "of the same size"])
def test_a_download_is_of_one_state_of_an_object(
    client: StoreClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int, size: int
) -> None:
    client.upload("checkpoint", b"a" * (9 << 20))
    read, calls = client._range, list[None]()

    def meanwhile(*asked: Any) -> Any:
        if len(calls) == at:
            client.upload("checkpoint", b"b" * size)
        calls.append(None)
        return read(*asked)

    monkeypatch.setattr(client, "_range", meanwhile)
    assert client.download("checkpoint", tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == b"b" * size


@pytest.mark.parametrize(
    "treatments",
    [
        (lose_answer,),
        (lose_request,),
        (lose_answer, lose_request, lose_request),
        (repeat,),
        (delay(TOO_LONG_S),),
        (delay(TOO_LONG_S, lose_answer),),
        (refuse(409, "ConditionalRequestConflict"),) * 2,
        (refuse(503, "SlowDown"),),
        (refuse(504, secret="<html>gateway</html>"),),
    ],
    ids=lambda treatments: "+".join(getattr(one, "__name__", "?") for one in treatments),
)
def test_whatever_becomes_of_a_write_its_outcome_is_true(
    impatient: StoreClient, proxy: StoreProxy, treatments: tuple[Any, ...]
) -> None:
    proxy.next_puts.extend(treatments)
    made = impatient.create("key", b"ours")
    assert made.outcome is PutOutcome.MADE and made.etag is not None
    proxy.next_puts.extend(treatments)
    replaced = impatient.replace("key", b"ours again", made.etag)
    assert replaced.outcome is PutOutcome.MADE
    proxy.next_puts.extend(treatments)
    assert impatient.create("key", b"too late").outcome is PutOutcome.EXISTS
    proxy.next_puts.extend(treatments)
    assert impatient.replace("key", b"too late", made.etag).outcome is PutOutcome.CHANGED
    found = impatient.get("key")
    assert found is not None and (found.data, found.etag) == (b"ours again", replaced.etag)


def test_a_write_that_arrives_after_silence_finds_our_own(impatient: StoreClient, proxy: StoreProxy) -> None:
    """The first attempt is carried out long after the second one: its condition does not hold any more."""
    arrived = threading.Event()

    def late(request: Any, send: Any) -> None:
        delay(1.5)(request, lambda late_request: answers.append(send(late_request)) or answers[0])
        arrived.set()

    answers: list[Any] = []
    proxy.next_puts.append(late)
    made = impatient.create("key", b"ours")
    assert made.outcome is PutOutcome.MADE and made.was_silent
    assert impatient.replace("key", b"newer", made.etag or "").outcome is PutOutcome.MADE
    assert arrived.wait(10) and answers[0].status in {409, 412}
    found = impatient.get("key")
    assert found is not None and found.data == b"newer"


def test_one_of_many_writers_wins_whatever_becomes_of_answers(client: StoreClient, proxy: StoreProxy) -> None:
    proxy.next_puts.extend([lose_answer, repeat, lose_request, refuse(409, "ConditionalRequestConflict")] * 3)
    bodies = [f"writer {number}".encode() for number in range(16)]
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda body: client.create("race", body), bodies))
    won = [body for body, result in zip(bodies, results, strict=True) if result.outcome is PutOutcome.MADE]
    found = client.get("race")
    assert found is not None and won == [found.data]
    assert {result.outcome for result in results} == {PutOutcome.MADE, PutOutcome.EXISTS}


def test_a_store_that_stays_silent_leaves_the_outcome_unknown(proxy: StoreProxy, url: str) -> None:
    client = hasty(url)
    proxy.always = lose_answer
    for result in (client.create("silent", b"x"), client.replace("silent", b"y", "1")):
        assert result.outcome is PutOutcome.UNKNOWN and result.cause == "the connection was closed without an answer"
    with pytest.raises(StoreError, match=r"cannot read silent\. The store does not answer"):
        client.get("silent")
    proxy.always = delay(TOO_LONG_S, lose_request)
    slow = open_store(url, replace(IMPATIENT, patience_s=0.2))
    assert slow.create("slow", b"x").cause == "no answer in time"


@pytest.mark.parametrize(
    ("status", "code", "fault", "words"),
    [
        (403, "AccessDenied", Fault.PERMISSION, "does not permit"),
        (400, "ExpiredToken", Fault.EXPIRED, "token has expired|signature has expired"),
        (400, "AuthorizationHeaderMalformed", Fault.REGION, "another region"),
        (403, "AuthorizationPermissionMismatch", Fault.PERMISSION, "does not permit"),
        (403, "AuthenticationFailed", Fault.CREDENTIALS, "does not accept the keys"),
        (404, "ContainerNotFound", Fault.BUCKET, "does not exist"),
        (401, "AuthenticationRequired", Fault.CREDENTIALS, "does not accept the keys"),
        (501, "NotImplemented", Fault.NO_CONDITIONS, "does not carry out conditional writes"),
        (400, "SomethingNew", Fault.OTHER, r"refuses the request \(SomethingNew\)"),
        (404, "", Fault.OTHER, r"refuses the request \(HTTP status 404\)"),
        (500, "InternalError", Fault.UNREACHABLE, "does not answer"),
        (503, "ServerBusy", Fault.UNREACHABLE, "does not answer"),
    ],
)
def test_refusals_by_kind(proxy: StoreProxy, url: str, status: int, code: str, fault: Fault, words: str) -> None:
    """As stores say them; what else is in the answer is not shown."""
    proxy.always = refuse(status, code, "a-secret-of-tests")
    client = hasty(url)
    attempts = [lambda: client.get("x"), lambda: client.delete("x"), lambda: client.list_below(), client.list_folder]
    if status < 500 or status == 501:
        attempts += [lambda: client.create("x", b"x"), lambda: client.replace("x", b"x", "1")]
    for attempt in attempts:
        with pytest.raises(StoreError, match=words) as caught:
            attempt()
        chain = f"{caught.value!r} {caught.value.__cause__!r} {caught.value.__cause__.__context__!r}"
        assert caught.value.fault == fault and "a-secret" not in chain


def test_each_attempt_is_one_request(proxy: StoreProxy, environment: pytest.MonkeyPatch, url: str) -> None:
    """The library repeats nothing by itself, and the environment does not turn conditions off."""
    environment.setenv("AWS_CONDITIONAL_PUT", "disabled")
    client = open_store(url, replace(HASTY, patience_s=0.0))
    proxy.always = refuse(500, "InternalError")
    assert client.create("x", b"x").outcome is PutOutcome.UNKNOWN
    assert [request.method for request in proxy.seen] == ["PUT"]
    assert {"*", "0"} & {proxy.seen[0].headers.get(name) for name in CONDITIONS}
    with pytest.raises(StoreError):
        client.get("x")
    assert len(proxy.seen) == 2


def test_a_wrong_bucket(proxy: StoreProxy, server: StoreServer) -> None:
    client = hasty(f"{server.kind}://nowhere/x")
    for attempt in (
        lambda: client.get("x"), lambda: client.create("x", b"x"), lambda: client.replace("x", b"x", "1"),
        lambda: client.upload("x", b"x"), lambda: client.delete("x"), lambda: client.list_below(),
    ):  # fmt: skip
        with pytest.raises(
            StoreError, match=r"://nowhere/x: cannot .* The (bucket|container) does not exist"
        ) as caught:
            attempt()
        assert caught.value.fault == Fault.BUCKET


@ONLY_S3
@pytest.mark.parametrize(("name", "value"), [("AWS_SECRET_ACCESS_KEY", "wrong"), ("AWS_ACCESS_KEY_ID", "nobody")])
def test_wrong_keys(proxy: StoreProxy, environment: pytest.MonkeyPatch, name: str, value: str) -> None:
    environment.setenv(name, value)
    client = hasty("s3://bucket/hasty")
    for attempt in (lambda: client.get("x"), lambda: client.create("x", b"x"), lambda: client.list_below()):
        with pytest.raises(StoreError, match="does not accept the keys") as caught:
            attempt()
        assert caught.value.fault == Fault.CREDENTIALS and value not in str(caught.value)


@ONLY_S3
def test_no_keys(proxy: StoreProxy, environment: pytest.MonkeyPatch) -> None:
    environment.delenv("AWS_ACCESS_KEY_ID")
    environment.delenv("AWS_SECRET_ACCESS_KEY")
    environment.setenv("AWS_METADATA_ENDPOINT", "http://127.0.0.1:1")
    client = hasty("s3://bucket/hasty")
    for attempt in (lambda: client.get("x"), lambda: client.create("x", b"x"), lambda: client.time()):
        with pytest.raises(StoreError, match="no keys in the environment") as caught:
            attempt()
        assert caught.value.fault == Fault.CREDENTIALS


@ONLY_S3
def test_no_permission(proxy: StoreProxy, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_SKIP_SIGNATURE", "true")
    client = hasty("s3://bucket/hasty")
    for attempt in (lambda: client.get("x"), lambda: client.create("x", b"x"), lambda: client.delete("x")):
        with pytest.raises(StoreError, match=r"does not permit it \(AccessDenied\)") as caught:
            attempt()
        assert caught.value.fault == Fault.PERMISSION


@ONLY_S3
def test_a_clock_that_the_store_refuses(proxy: StoreProxy) -> None:
    proxy.always = shift_clock(3600)
    with pytest.raises(StoreError, match=r"this machine's clock is wrong \(RequestTimeTooSkewed\)") as caught:
        hasty("s3://bucket/hasty").create("x", b"x")
    assert caught.value.fault == Fault.CLOCK
    assert hasty("s3://bucket/hasty").time().ahead_s == pytest.approx(3600, abs=60)


@pytest.mark.parametrize(
    ("endpoint", "cause"),
    [("http://127.0.0.1:1", "connection refused"), ("https://ADDRESS", "it does not speak TLS")],
)
def test_a_store_that_cannot_be_reached(
    proxy: StoreProxy, environment: pytest.MonkeyPatch, server: StoreServer, url: str, endpoint: str, cause: str
) -> None:
    for name, value in server.environment.items():
        if value.startswith("http://"):
            environment.setenv(name, endpoint.replace("ADDRESS", server.address))
    client = hasty(url)
    for attempt in (lambda: client.get("x"), lambda: client.create("x", b"x")):
        with pytest.raises(StoreError, match=rf"does not answer \({cause}\)") as caught:
            attempt()
        assert caught.value.fault == Fault.UNREACHABLE
    with pytest.raises(StoreError, match="cannot read the time"):
        client.time()


def test_the_time_of_the_store(proxy: StoreProxy, url: str) -> None:
    assert abs(hasty(url).time().ahead_s) < 30
