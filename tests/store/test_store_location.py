"""URLs of stores, and the kinds of failures; none shows a secret."""

from __future__ import annotations

import sys

import pytest

from hybrid.errors import MachineError, SpecError, known_kinds
from hybrid.store.store_client import open_store
from hybrid.store.store_faults import REMEDIES, Fault, StoreFailure, classify, store_error
from hybrid.store.store_location import StoreLocation, hide_secrets, parse_location


@pytest.mark.parametrize(
    ("url", "location", "shown"),
    [
        ("s3://lake", StoreLocation("lake"), "s3://lake"),
        ("s3://lake/", StoreLocation("lake"), "s3://lake"),
        ("S3://lake/a/b/", StoreLocation("lake", "a/b"), "s3://lake/a/b"),
        ("s3://my.lake/a b", StoreLocation("my.lake", "a b"), "s3://my.lake/a b"),
    ],
)
def test_locations(url: str, location: StoreLocation, shown: str) -> None:
    assert parse_location(url) == location and location.url == shown


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("gs://lake", "'gs://lake' is not the URL"),
        ("lake", "'lake' is not the URL"),
        ("/tmp/lake", "is not the URL"),
        ("s3://L", "cannot be the name of a bucket"),
        ("s3:///a", "cannot be the name of a bucket"),
        ("s3://lake/a//b", "empty part"),
        ("s3://lake/../b", "empty part"),
        ("s3://key:hidden@lake/a", r"s3://\*\*\*@lake/a: a store's URL has no login"),
        ("s3://lake/a?secret=hidden", r"s3://lake/a\?\*\*\*: a store's URL has no login"),
        ("https://key:hidden@lake/a?x=hidden", r"https://\*\*\*@lake/a\?\*\*\*' is not the URL"),
        ("key:hidden@lake", r"'\*\*\*@lake' is not the URL"),
    ],
)
def test_urls_that_cannot_be(url: str, words: str) -> None:
    with pytest.raises(SpecError, match=words) as caught:
        parse_location(url)
    assert "hidden" not in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize("endpoint", ["http://key:hidden@h:1", "ftp://h", "h:1", "https://h?x=hidden"])
def test_endpoints_that_cannot_be(environment: pytest.MonkeyPatch, endpoint: str) -> None:
    environment.setenv("AWS_ENDPOINT_URL", endpoint)
    with pytest.raises(SpecError, match="is not a URL such as") as caught:
        open_store("s3://lake")
    assert "hidden" not in str(caught.value)


def test_secrets_are_hidden_whatever_the_url() -> None:
    assert hide_secrets("s3://a:b@c@lake/x#y") == "s3://***@lake/x?***"


def test_without_obstore(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "obstore"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MachineError, match="needs the package obstore") as caught:
        open_store("s3://lake")
    assert caught.value.hint == "pip install 'hybrid[store]'"


def answer(status: str, code: str = "") -> Exception:
    body = f"<Error><Code>{code}</Code><Message>hidden</Message></Error>" if code else ""
    return RuntimeError(
        f"Error performing PUT http://h/b/k in 1ms - Server returned non-2xx status code: {status}: {body}"
    )


@pytest.mark.parametrize(
    ("error", "fault", "may_be_done"),
    [
        (answer("404 Not Found", "NoSuchKey"), Fault.MISSING, False),
        (answer("404 Not Found", "NoSuchBucket"), Fault.BUCKET, False),
        (answer("404 Not Found"), Fault.OTHER, False),
        (answer("412 Precondition Failed"), Fault.CONDITION, False),
        (answer("409 Conflict", "ConditionalRequestConflict"), Fault.CONFLICT, False),
        (answer("403 Forbidden", "AccessDenied"), Fault.PERMISSION, False),
        (answer("403 Forbidden", "InvalidAccessKeyId"), Fault.CREDENTIALS, False),
        (answer("403 Forbidden", "RequestTimeTooSkewed"), Fault.CLOCK, False),
        (answer("400 Bad Request", "ExpiredToken"), Fault.EXPIRED, False),
        (answer("400 Bad Request", "AuthorizationHeaderMalformed"), Fault.REGION, False),
        (answer("400 Bad Request", "NewError"), Fault.OTHER, False),
        (answer("501 Not Implemented", "NotImplemented"), Fault.NO_CONDITIONS, False),
        (answer("503 Service Unavailable", "SlowDown"), Fault.UNREACHABLE, True),
        (answer("500 Internal Server Error"), Fault.UNREACHABLE, True),
        (answer("504 Gateway Timeout"), Fault.UNREACHABLE, True),
        (RuntimeError("Received redirect without LOCATION"), Fault.REGION, False),
        (RuntimeError("PUT http://169.254.169.254/latest/api/token - Server returned x"), Fault.CREDENTIALS, False),
        (ConnectionRefusedError("refused"), Fault.UNREACHABLE, False),
        (RuntimeError("a text of another version"), Fault.OTHER, True),
    ],
)
def test_kinds_of_failures(error: Exception, fault: Fault, may_be_done: bool) -> None:
    failure = classify(error)
    assert (failure.fault, failure.may_be_done) == (fault, may_be_done)
    shown = store_error(StoreLocation("lake"), "write k", failure)
    assert shown.fault == fault and "hidden" not in str(shown) and str(shown).startswith("s3://lake: cannot write k. ")
    assert shown.hint == REMEDIES.get(fault)


def test_errors_go_over_a_wire() -> None:
    error = store_error(StoreLocation("lake"), "read k", StoreFailure(Fault.EXPIRED, "ExpiredToken"))
    assert str(known_kinds()[error.code](str(error), hint=error.hint)) == str(error)
