"""Older versions of objects and unfinished uploads on a real S3 server, by requests that obstore signs."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hybrid.errors import StoreError
from hybrid.store.conditional_put import RequestFailedError
from hybrid.store.object_versions import ObjectVersions, OlderVersion
from hybrid.store.s3_requests import S3Requests
from hybrid.store.store_backend import StoreTuning
from hybrid.store.store_client import StoreClient, open_store
from hybrid.store.store_faults import Fault, StoreFailure
from hybrid.store.store_location import StoreLocation
from tests.s3_server import S3Server, needs_s3, s3_server

ODD = "t/a b=\u00fc%41+&?/x"


@pytest.fixture(scope="module")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    folder = tmp_path_factory.mktemp("s3")
    (folder / "versions").mkdir()
    with s3_server(folder / "store", folder / "versions") as found:
        yield found


@pytest.fixture
def signed_in(s3: S3Server, environment: pytest.MonkeyPatch) -> S3Server:
    for name, value in s3.environment.items():
        environment.setenv(name, value)
    return s3


def client_of(bucket: str) -> StoreClient:
    return open_store(f"s3://{bucket}/pre/fix", StoreTuning(patience_s=2.0))


@needs_s3
@pytest.mark.process
def test_a_bucket_without_versions(signed_in: S3Server) -> None:
    signed_in.create_bucket("plain")
    client = client_of("plain")
    versions = ObjectVersions(client)
    for data in (b"1", b"2"):
        client.upload(ODD, data)
    assert (versions.versioning(), versions.retention()) == ("", "")
    assert versions.kept("t").older == versions.kept("t").lone_markers == versions.unfinished("t") == []


@needs_s3
@pytest.mark.process
@pytest.mark.parametrize("page", [4, 1000])
def test_older_versions_are_listed_and_go(signed_in: S3Server, page: int) -> None:
    bucket = f"kept-{page}"
    signed_in.create_bucket(bucket)
    client = client_of(bucket)
    if page == 1000:
        client.upload(ODD, b"before versions were kept")
    signed_in.keep_versions(bucket)
    client.upload(ODD, b"when they were kept")
    versions = ObjectVersions(client, page)
    for data in (b"1", b"22", b"333"):
        client.upload(ODD, data)
        client.upload("t/gone", data)
        client.upload("tt/of another table", data)
    client.delete("t/gone")
    older = versions.kept("t").older
    assert versions.versioning() == "Enabled"
    early = int(page == 1000)
    assert sorted(version.key for version in older) == [*[ODD] * (3 + early), "t/gone", "t/gone", "t/gone"]
    assert sum(version.version == "null" for version in older) == early
    assert versions.kept("t").lone_markers == [], "it has versions yet"
    versions.delete_all([*older, older[0]])
    client.delete("t/gone")  # a marker on a marker
    markers = versions.kept("t").lone_markers
    assert versions.kept("t").older == [] and [marker.key for marker in markers] == ["t/gone", "t/gone"]
    versions.delete_all(markers)
    present = client.get(ODD)
    assert present is not None and present.data == b"333" and client.get("t/gone") is None
    assert versions.kept("t").lone_markers == [] and len(versions.kept("tt").older) == 2


@needs_s3
@pytest.mark.process
def test_parts_of_a_list_are_read_one_at_a_time(signed_in: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    signed_in.create_bucket("many")
    signed_in.keep_versions("many")
    client, parts, most = client_of("many"), list[weakref.ref[Any]](), list[int]()
    for number in range(8):
        client.upload(f"t/{number}", b"1")
    versions = ObjectVersions(client, page=2)
    ask = versions._asked

    def asked(*request: Any) -> Any:
        most.append(sum(part() is not None for part in parts))
        part = ask(*request)
        parts.append(weakref.ref(part))
        return part

    monkeypatch.setattr(versions, "_asked", asked)
    assert versions.kept("t").older == [] and len(most) > 4 and max(most) == 1


@needs_s3
@pytest.mark.process
def test_a_list_that_ends_too_early_or_never_does_not_count(signed_in: S3Server) -> None:
    """versitygw 1.8.0 ends a list behind a version without an id, and repeats a part of one version."""
    signed_in.create_bucket("cut")
    client = client_of("cut")
    client.upload("t/a", b"before versions were kept")
    signed_in.keep_versions("cut")
    for name in ("t/a", "t/a", "t/b"):
        client.upload(name, b"1")
    assert [version.key for version in ObjectVersions(client).kept("t").older] == ["t/a", "t/a"]
    with pytest.raises(StoreError, match="lacks t/b, so it is not whole"):
        ObjectVersions(client, page=3).kept("t")
    with pytest.raises(StoreError, match="again and again"):
        ObjectVersions(client, page=1).kept("t")


@needs_s3
@pytest.mark.process
def test_uploads_that_did_not_end_are_listed_and_go(signed_in: S3Server) -> None:
    signed_in.create_bucket("uploads")
    versions = ObjectVersions(client_of("uploads"))
    for name in ("t/one", "t/two", "tt/other"):
        signed_in.begin_upload(f"/uploads/pre/fix/{name}")
    found = versions.unfinished("t")
    assert [upload.key for upload in found] == ["t/one", "t/two"]
    assert all(abs(datetime.now(UTC) - upload.began) < timedelta(minutes=1) for upload in found)
    for upload in [*found, found[0]]:
        versions.abort(upload)
    assert versions.unfinished("t") == [] and len(versions.unfinished("tt")) == 1


@needs_s3
@pytest.mark.process
def test_object_lock_is_told_and_keeps_a_version(signed_in: S3Server) -> None:
    signed_in.create_locked_bucket("locked", days=3)
    client = client_of("locked")
    versions = ObjectVersions(client)
    client.upload("t/x", b"1")
    client.upload("t/x", b"2")
    assert (versions.versioning(), versions.retention()) == ("Enabled", "3 days")
    with pytest.raises(StoreError, match="Object lock or a legal hold may keep it") as refused:
        versions.delete(versions.kept("t").older[0])
    assert "s3:DeleteObjectVersion" in str(refused.value.hint)


@needs_s3
@pytest.mark.process
def test_wrong_keys_and_a_missing_bucket_are_named(signed_in: S3Server, environment: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoreError, match="The bucket does not exist"):
        ObjectVersions(client_of("missing")).kept("t")
    environment.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(StoreError, match="does not accept the keys"):
        ObjectVersions(client_of("missing")).versioning()


@pytest.mark.parametrize("answer", [b"<ListBucketResult/>", b"no XML", "NotImplemented", "HTTP status 405"])
def test_a_store_that_does_not_list_versions_is_told(environment: pytest.MonkeyPatch, answer: bytes | str) -> None:
    def send(*_: object) -> bytes:
        if isinstance(answer, bytes):
            return answer
        raise RequestFailedError(StoreFailure(Fault.OTHER, answer))

    environment.setattr(S3Requests, "send", send)
    with pytest.raises(StoreError, match="does not know this request of S3"):
        ObjectVersions(client_of("any")).kept("t")
    with pytest.raises(StoreError, match="does not know this request of S3"):
        ObjectVersions(client_of("any")).unfinished("t")
    assert ObjectVersions(client_of("any")).retention() == ""


def test_a_right_that_lacks_is_named(environment: pytest.MonkeyPatch) -> None:
    def send(*_: object) -> bytes:
        raise RequestFailedError(StoreFailure(Fault.PERMISSION, "AccessDenied"))

    environment.setattr(S3Requests, "send", send)
    with pytest.raises(StoreError, match="does not permit it") as refused:
        ObjectVersions(client_of("any")).kept("t")
    assert "s3:ListBucketVersions" in str(refused.value.hint)
    with pytest.raises(StoreError, match="legal hold"):
        ObjectVersions(client_of("any")).delete(OlderVersion("t/x", "1"))


@pytest.mark.parametrize("style", ["path", "host"])
def test_requests_are_signed_as_obstore_signs_others(environment: pytest.MonkeyPatch, style: str) -> None:
    """What belongs to the request is in the address, and a token of temporary keys goes along."""
    for name, value in {"ACCESS_KEY_ID": "id", "SECRET_ACCESS_KEY": "secret", "SESSION_TOKEN": "token",
                        "REGION": "eu-central-1"}.items():  # fmt: skip
        environment.setenv(f"AWS_{name}", value)
    host = "https://s3.eu-central-1.amazonaws.com/bucket"
    if style == "host":
        environment.setenv("AWS_VIRTUAL_HOSTED_STYLE_REQUEST", "true")
        host = "https://bucket.s3.eu-central-1.amazonaws.com"
    requests = S3Requests(StoreLocation("bucket"), StoreTuning())
    url = requests._signed("DELETE", "a b/c", {"versionId": "1+2"})
    assert url.startswith(f"{host}/a%20b/c?versionId=1%2B2&x-id=")
    assert "X-Amz-Security-Token=token" in url and "X-Amz-Signature=" in url
