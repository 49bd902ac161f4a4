"""Older versions of objects, and uploads that did not end: what a bucket of S3 keeps and no list of objects shows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar
from xml.etree import ElementTree

from hybrid.errors import StoreError
from hybrid.store.conditional_put import RequestFailedError
from hybrid.store.mirror import for_all
from hybrid.store.s3_requests import S3Requests
from hybrid.store.store_client import StoreClient
from hybrid.store.store_faults import Fault, StoreFailure, store_error

T = TypeVar("T")

# The version of an object that was written while the bucket kept none, or was suspended: not an id of its own.
NULL = "null"
_PAGE = 1000  # the most that a store lists at once
_NO_SUCH_REQUEST = frozenset({"NotImplemented", "MethodNotAllowed", "HTTP status 501", "HTTP status 405"})
# What stores say of a version, by an id that they have listed, which somebody has deleted since.
_GONE = frozenset({"NoSuchVersion", "NoSuchKey", "InvalidArgument"})
_NO_LOCK = frozenset({"ObjectLockConfigurationNotFoundError", "InvalidRequest", *_NO_SUCH_REQUEST})
_RIGHTS = (
    "Permit s3:ListBucketVersions, s3:ListBucketMultipartUploads, s3:GetBucketVersioning and "
    "s3:GetBucketObjectLockConfiguration on the bucket, s3:DeleteObjectVersion and s3:AbortMultipartUpload below the "
    "prefix."
)


@dataclass(frozen=True)
class OlderVersion:
    """A version of an object, or a delete marker of one. `key` is relative to the store's prefix."""

    key: str
    version: str


@dataclass(frozen=True)
class KeptVersions:
    """What a bucket keeps beside current objects: versions that are not current, and delete markers without a version.

    A store may keep bytes with such a marker. Those without an id of their own are left out: by that name an object
    could be deleted.
    """

    older: list[OlderVersion]
    lone_markers: list[OlderVersion]


@dataclass(frozen=True)
class UnfinishedUpload:
    """An upload in parts that has not ended; its parts are kept until it is aborted."""

    key: str
    upload: str
    began: datetime


class ObjectVersions:
    """Versions and unfinished uploads below the prefix of a store of S3. Thread-safe. StoreError as of `StoreClient`.

    Each method also raises it, with the rights that are needed, when the store refuses or does not know the request.
    """

    def __init__(self, client: StoreClient, page: int = _PAGE) -> None:
        self._client, self._location, self._page = client, client.location, page
        self._requests = S3Requests(client.location, client.tuning)

    def versioning(self) -> str:
        """`Enabled`, `Suspended`, or empty for a bucket that never kept versions."""
        answer = self._asked("ask for versioning", {"versioning": ""}, "VersioningConfiguration")
        return _text(answer, "Status")

    def retention(self) -> str:
        """How long object lock keeps each new object, in words; empty without such a rule."""
        try:
            answer = self._asked("ask for object lock", {"object-lock": ""}, "ObjectLockConfiguration", _NO_LOCK)
        except _UnknownRequestError:
            return ""
        rule = answer.find(".//DefaultRetention")
        if rule is None:
            return ""
        return f"{_text(rule, 'Days') or _text(rule, 'Years')} {'days' if _text(rule, 'Days') else 'years'}"

    def kept(self, prefix: str) -> KeptVersions:
        """What the bucket keeps below a prefix beside the current objects; nothing where no version was ever kept.

        StoreError too when the list lacks a current object: it has ended too early. So it must not be asked for a
        prefix whose last name may have no current object.
        """
        if not self.versioning():
            return KeptVersions([], [])
        there = {item.key for item in self._client.list_below(prefix)}
        versions, markers = self._listed(prefix)
        if lacking := sorted(there - {version.key for version in (*versions, *markers)}):
            raise StoreError(
                f"{self._location.url}: the list of versions below {prefix} lacks {lacking[0]}, so it is not whole.",
                hint="Let a lifecycle rule of the bucket remove noncurrent versions; the list is shorter then.",
            )
        alive = {version.key for version in versions}
        return KeptVersions(
            [version for version, is_current in versions.items() if not is_current],
            [marker for marker in markers if marker.key not in alive and marker.version != NULL],
        )

    def _listed(self, prefix: str) -> tuple[dict[OlderVersion, bool], list[OlderVersion]]:
        """All versions below a prefix, each with whether it is current, and all delete markers."""
        versions, markers = dict[OlderVersion, bool](), list[OlderVersion]()
        for page in self._pages(prefix):  # one at a time: a thousand versions have some megabytes as XML
            versions |= {self._version(item): _text(item, "IsLatest") == "true" for item in page.iter("Version")}
            markers += [self._version(item) for item in page.iter("DeleteMarker")]
        return versions, markers

    def _version(self, item: ElementTree.Element) -> OlderVersion:
        return OlderVersion(self._relative(item), _text(item, "VersionId"))

    def delete(self, version: OlderVersion) -> None:
        """Delete a version for good; none is no error. StoreError when object lock, or a legal hold, keeps it."""
        deed = f"delete version {version.version} of {version.key}"
        with_id = {"versionId": version.version}
        self._repeated(deed, lambda: self._requests.send("DELETE", self._absolute(version.key), with_id), _GONE)

    def delete_all(self, versions: Sequence[OlderVersion]) -> None:
        """Delete versions for good: those of one object one after the other, since each may uncover another."""
        of_key = defaultdict[str, list[OlderVersion]](list)
        for version in versions:
            of_key[version.key].append(version)

        def delete(key: str) -> None:
            for version in of_key[key]:
                self.delete(version)

        for_all(delete, list(of_key))

    def unfinished(self, prefix: str) -> list[UnfinishedUpload]:
        """Uploads below a prefix that have not ended: at least one while there are any, at most a thousand."""
        query = {"uploads": "", "prefix": self._absolute(f"{prefix}/")}
        page = self._asked(f"list uploads below {prefix}", query, "ListMultipartUploadsResult")
        return [
            UnfinishedUpload(self._relative(item), _text(item, "UploadId"), _moment(_text(item, "Initiated")))
            for item in page.iter("Upload")
        ]

    def abort(self, upload: UnfinishedUpload) -> None:
        """Remove the parts of an upload; none is no error."""
        deed = f"abort the upload of {upload.key}"
        with_id = {"uploadId": upload.upload}
        self._repeated(
            deed, lambda: self._requests.send("DELETE", self._absolute(upload.key), with_id), {"NoSuchUpload"}
        )

    def _pages(self, prefix: str) -> Iterator[ElementTree.Element]:
        """The parts of the list of versions below a prefix."""
        deed = f"list versions below {prefix}"
        query = {"versions": "", "prefix": self._absolute(f"{prefix}/"), "max-keys": f"{self._page}"}
        seen = set[tuple[str, str]]()
        while True:
            page = self._asked(deed, query, "ListVersionsResult")
            yield page
            if _text(page, "IsTruncated") != "true":
                return
            behind = (_text(page, "NextKeyMarker"), _text(page, "NextVersionIdMarker"))
            if behind in seen:
                raise StoreError(f"{self._location.url}: cannot {deed}. The store gives the same part again and again.")
            seen.add(behind)
            query |= {"key-marker": behind[0], "version-id-marker": behind[1]}

    def _asked(
        self, deed: str, query: Mapping[str, str], root: str, unknown: frozenset[str] = _NO_SUCH_REQUEST
    ) -> ElementTree.Element:
        """The answer to a request to the bucket. A store may know other elements than those that are read."""
        data = self._repeated(deed, lambda: self._requests.send("GET", "", query), unknown, raises=True)
        try:
            answer = _without_namespaces(ElementTree.fromstring(data))
        except ElementTree.ParseError as error:
            raise self._unknown(deed) from error
        if answer.tag != root:
            raise self._unknown(deed)
        return answer

    def _repeated(
        self, deed: str, send: Callable[[], bytes], accepted: frozenset[str] | set[str] = frozenset(), *,
        raises: bool = False,
    ) -> bytes:  # fmt: skip
        try:
            return send()
        except RequestFailedError as error:
            failure = error.failure
        if failure.cause in accepted:
            if raises:
                raise self._unknown(deed)
            return b""
        raise self._error(deed, failure)

    def _error(self, deed: str, failure: StoreFailure) -> StoreError:
        error = store_error(self._location, deed, failure)
        if failure.fault is not Fault.PERMISSION:
            return error
        locked = " Object lock or a legal hold may keep it." if deed.startswith("delete") else ""
        return StoreError(f"{error}{locked}", hint=_RIGHTS, fault=failure.fault)

    def _unknown(self, deed: str) -> _UnknownRequestError:
        return _UnknownRequestError(
            f"{self._location.url}: cannot {deed}. The store does not know this request of S3.",
            hint="Use a store that lists versions of objects and unfinished uploads, as Amazon S3 does.",
            fault=Fault.OTHER,
        )

    def _absolute(self, key: str) -> str:
        return f"{self._location.prefix}/{key}" if self._location.prefix else key

    def _relative(self, item: ElementTree.Element) -> str:
        key = _text(item, "Key")
        return key.removeprefix(f"{self._location.prefix}/") if self._location.prefix else key


class _UnknownRequestError(StoreError):
    """The store does not know a request, or has no configuration of the kind."""


def _without_namespaces(root: ElementTree.Element) -> ElementTree.Element:
    for item in root.iter():
        item.tag = item.tag.rpartition("}")[2]
    return root


def _text(item: ElementTree.Element, name: str) -> str:
    return item.findtext(name) or ""


def _moment(text: str) -> datetime:
    """An ISO 8601 time, also with nanoseconds. Without one: now, so that nothing is taken as old."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return datetime.now(UTC)
