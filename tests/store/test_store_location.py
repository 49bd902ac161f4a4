"""URLs of stores, and the kinds of failures; none shows a secret."""

from __future__ import annotations

import sys

import pytest

from hybrid.errors import MachineError, SpecError, known_kinds
from hybrid.store.store_client import open_store
from hybrid.store.store_faults import Fault, StoreFailure, classify, store_error
from hybrid.store.store_location import StoreKind, StoreLocation, check_key, hide_secrets, parse_location
from hybrid.store.store_remedies import remedy


@pytest.mark.parametrize(
    ("url", "location", "shown"),
    [
        ("s3://lake", StoreLocation("lake"), "s3://lake"),
        ("s3://lake/", StoreLocation("lake"), "s3://lake"),
        ("S3://lake/a/b/", StoreLocation("lake", "a/b"), "s3://lake/a/b"),
        ("s3://my.lake/a b", StoreLocation("my.lake", "a b"), "s3://my.lake/a b"),
        ("az://lake-1/a/", StoreLocation("lake-1", "a", StoreKind.AZURE), "az://lake-1/a"),
        ("gs://lake_1.org/a", StoreLocation("lake_1.org", "a", StoreKind.GOOGLE), "gs://lake_1.org/a"),
    ],
)
def test_locations(url: str, location: StoreLocation, shown: str) -> None:
    assert parse_location(url) == location and location.url == shown


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://lake", "'ftp://lake' is not the URL"),
        ("az://lake--1", "cannot be the name of a container"),
        ("az://-lake", "cannot be the name of a container"),
        ("az://la.ke", "cannot be the name of a container"),
        ("az://lake/a./b", "Azure keeps no name with a part that ends with a dot"),
        ("gs://Lake", "cannot be the name of a bucket"),
        ("az://key:hidden@lake/a", r"az://\*\*\*@lake/a: a store's URL has no login"),
        ("az://lake/a?sig=hidden", r"az://lake/a\?\*\*\*: a store's URL has no login"),
        ("abfss://lake@account.dfs.core.windows.net/a", r"another form than the URLs here: az://container/prefix"),
        ("wasbs://lake@account.blob.core.windows.net/a?sig=hidden", "another form than the URLs here: az://"),
        ("gcs://lake/a", "another form than the URLs here: gs://bucket/prefix"),
        ("s3a://lake/a", "another form than the URLs here: s3://bucket/prefix"),
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


@pytest.mark.parametrize(
    ("url", "variables", "words"),
    [
        ("az://lake", {}, "does not name the storage account"),
        ("az://lake", {"AZURE_STORAGE_ACCOUNT_KEY": "hidden"}, "does not name the storage account"),
        ("az://lake", {"AZURE_STORAGE_ACCOUNT_KEY": "%hidden%"}, "the account's key is not base64"),
        ("az://lake", {"AZURE_STORAGE_SAS_TOKEN": "hidden"}, "the shared access signature has a damaged part"),
        ("az://lake", {"AZURE_STORAGE_ENDPOINT": "https://u:hidden@h"}, "is not a URL such as"),
        ("az://lake", {"AZURE_STORAGE_ENDPOINT": "https://h?sig=hidden"}, "is not a URL such as"),
        ("az://lake", {"AZURE_USE_FABRIC_ENDPOINT": "true"}, "OneLake of Microsoft Fabric cannot hold a warehouse"),
        ("az://lake", {"AZURE_STORAGE_ENDPOINT": "https://x.blob.fabric.microsoft.com"}, "OneLake"),
        ("gs://lake", {"GOOGLE_SERVICE_ACCOUNT": "/nowhere/hidden.json"}, "file of the service account cannot be read"),
        ("gs://lake", {"GOOGLE_SERVICE_ACCOUNT_KEY": "hidden"}, "key is not JSON of the form"),
        ("gs://lake", {"GOOGLE_BASE_URL": "https://u:hidden@h"}, "is not a URL such as"),
        ("gs://lake", {"GOOGLE_SERVICE_ACCOUNT_KEY": '{"gcs_base_url": "https://u:hidden@h"}'}, "is not a URL such as"),
    ],
)
def test_environments_that_cannot_be(
    environment: pytest.MonkeyPatch, url: str, variables: dict[str, str], words: str
) -> None:
    if words != "does not name the storage account":
        environment.setenv("AZURE_STORAGE_ACCOUNT_NAME", "account")
    for name, value in variables.items():
        environment.setenv(name, value)
    with pytest.raises(SpecError, match=words) as caught:
        open_store(url)
    error = caught.value
    assert "hidden" not in f"{error} {error.hint} {error.__cause__!r} {error.__context__!r}" and error.hint


def test_names_that_azure_changes() -> None:
    check_key(parse_location("s3://lake"), "t/_segment=a./x")
    check_key(parse_location("az://lake"), "t/_segment=a.b/x.parquet")
    with pytest.raises(SpecError, match=r"ends with a dot, as in t/_segment=a\./x"):
        check_key(parse_location("az://lake"), "t/_segment=a./x")


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


def azure_answer(status: str, code: str, detail: str = "") -> Exception:
    """With Azure's sentence for every refused signature, and the detail beside it."""
    body = (
        f"<Error><Code>{code}</Code><Message>Server failed to authenticate the request. hidden</Message>"
        f"<AuthenticationErrorDetail>{detail}</AuthenticationErrorDetail></Error>"
    )
    return RuntimeError(f"Error performing GET REDACTED - Server returned non-2xx status code: {status}: {body}")


def token_answer(status: str, body: str) -> Exception:
    return RuntimeError(
        "Generic GCS error: Error performing token request: Error performing POST https://oauth2.example.org/token in "
        f"1ms - Server returned non-2xx status code: {status}: {body}"
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
        (azure_answer("403 Forbidden", "AuthenticationFailed"), Fault.CREDENTIALS, False),
        (azure_answer("403 Forbidden", "AuthorizationFailure"), Fault.CREDENTIALS, False),
        (
            azure_answer(
                "403 Forbidden",
                "AuthenticationFailed",
                "Signature not valid in the specified time frame: [hidden]",
            ),
            Fault.EXPIRED,
            False,
        ),
        (
            azure_answer("403 Forbidden", "AuthenticationFailed", "Request date header too old: 'hidden'"),
            Fault.CLOCK,
            False,
        ),
        (answer("403 Forbidden", "AuthorizationFailure"), Fault.PERMISSION, False),
        (answer("403 Forbidden", "AuthorizationPermissionMismatch"), Fault.PERMISSION, False),
        (answer("404 Not Found", "ContainerNotFound"), Fault.BUCKET, False),
        (answer("404 Not Found", "BlobNotFound"), Fault.MISSING, False),
        (answer("409 Conflict", "BlobAlreadyExists"), Fault.CONDITION, False),
        (answer("412 Precondition Failed", "ConditionNotMet"), Fault.CONDITION, False),
        (answer("412 Precondition Failed", "LeaseIdMissing"), Fault.PERMISSION, False),
        (answer("409 Conflict", "BlobImmutableDueToPolicy"), Fault.PERMISSION, False),
        (answer("500 Internal Server Error", "OperationTimedOut"), Fault.UNREACHABLE, True),
        (answer("503 Service Unavailable", "ServerBusy"), Fault.UNREACHABLE, True),
        (FileNotFoundError("Bulk delete request failed for key hidden: gone (code: 404)"), Fault.MISSING, False),
        (
            FileNotFoundError(
                "Bulk delete request failed for key k: The specified container does not exist. (code: 404)"
            ),
            Fault.BUCKET,
            False,
        ),
        (RuntimeError("Bulk delete request failed for key hidden: no (code: 403)"), Fault.PERMISSION, False),
        (
            token_answer("400 Bad Request", '{"error":"invalid_grant","error_description":"hidden"}'),
            Fault.CREDENTIALS,
            False,
        ),
        (
            token_answer(
                "400 Bad Request",
                '{"error":"invalid_grant","error_description":"Invalid JWT: Token must be a '
                'short-lived token (60 minutes) and in a reasonable timeframe. hidden"}',
            ),
            Fault.CLOCK,
            False,
        ),
        (
            token_answer("401 Unauthorized", '{"error":"invalid_client","error_description":"AADSTS7000222: hidden"}'),
            Fault.EXPIRED,
            False,
        ),
        (token_answer("503 Service Unavailable", "hidden"), Fault.UNREACHABLE, True),
        (
            RuntimeError("GET http://169.254.169.254/metadata/identity/oauth2/token - Server returned x"),
            Fault.CREDENTIALS,
            False,
        ),
        (RuntimeError("Received redirect without LOCATION"), Fault.REGION, False),
        (RuntimeError("PUT http://169.254.169.254/latest/api/token - Server returned x"), Fault.CREDENTIALS, False),
        (ConnectionRefusedError("refused"), Fault.UNREACHABLE, False),
        (RuntimeError("a text of another version"), Fault.OTHER, True),
    ],
)
def test_kinds_of_failures(error: Exception, fault: Fault, may_be_done: bool) -> None:
    failure = classify(error)
    assert (failure.fault, failure.may_be_done) == (fault, may_be_done)
    for kind in StoreKind:
        shown = store_error(StoreLocation("lake", kind=kind), "write k", failure)
        assert shown.fault == fault and "hidden" not in str(shown)
        assert str(shown).startswith(f"{kind}://lake: cannot write k. ") and shown.hint == remedy(kind, fault)


def test_errors_go_over_a_wire() -> None:
    error = store_error(StoreLocation("lake"), "read k", StoreFailure(Fault.EXPIRED, "ExpiredToken"))
    assert str(known_kinds()[error.code](str(error), hint=error.hint)) == str(error)
