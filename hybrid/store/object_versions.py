"""Older versions of objects, and uploads that did not end: what a bucket of S3 keeps and no list of objects shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TypeVar
from xml.etree import ElementTree

from hybrid.errors import StoreError
from hybrid.store.conditional_put import RequestFailedError
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
    """A version of an object that is not the current one. `key` is relative to the store's prefix."""

    key: str
    version: str


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
        self._location, self._page = client.location, page
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

    def older(self, prefix: str) -> list[OlderVersion]:
        """The versions below a prefix that are not current, without delete markers."""
        pages = self._pages("versions", prefix, "ListVersionsResult", "VersionId")
        found = (item for page in pages for item in page.iter("Version") if _text(item, "IsLatest") == "false")
        return [OlderVersion(self._relative(item), _text(item, "VersionId")) for item in found]

    def lone_markers(self, prefix: str) -> list[OlderVersion]:
        """The delete markers below a prefix of objects that have no version any more. A store may keep bytes with one.

        Those without an id of their own are left out: by that name an object could be deleted.
        """
        pages = list(self._pages("versions", prefix, "ListVersionsResult", "VersionId"))
        alive = {_text(item, "Key") for page in pages for item in page.iter("Version")}
        markers = (item for page in pages for item in page.iter("DeleteMarker") if _text(item, "Key") not in alive)
        found = (OlderVersion(self._relative(item), _text(item, "VersionId")) for item in markers)
        return [marker for marker in found if marker.version != NULL]

    def delete(self, version: OlderVersion) -> None:
        """Delete a version for good; none is no error. StoreError when object lock, or a legal hold, keeps it."""
        deed = f"delete version {version.version} of {version.key}"
        with_id = {"versionId": version.version}
        self._repeated(deed, lambda: self._requests.send("DELETE", self._absolute(version.key), with_id), _GONE)

    def unfinished(self, prefix: str) -> list[UnfinishedUpload]:
        """The uploads below a prefix that have not ended."""
        pages = self._pages("uploads", prefix, "ListMultipartUploadsResult", "UploadId")
        return [
            UnfinishedUpload(self._relative(item), _text(item, "UploadId"), _moment(_text(item, "Initiated")))
            for page in pages
            for item in page.iter("Upload")
        ]

    def abort(self, upload: UnfinishedUpload) -> None:
        """Remove the parts of an upload; none is no error."""
        deed = f"abort the upload of {upload.key}"
        with_id = {"uploadId": upload.upload}
        self._repeated(
            deed, lambda: self._requests.send("DELETE", self._absolute(upload.key), with_id), {"NoSuchUpload"}
        )

    def _pages(self, what: str, prefix: str, root: str, marker: str) -> Iterator[ElementTree.Element]:
        behind = {
            "prefix": self._absolute(f"{prefix}/"),
            f"max-{'keys' if what == 'versions' else what}": f"{self._page}",
        }
        while True:
            page = self._asked(f"list {what} below {prefix}", {what: "", **behind}, root)
            yield page
            if _text(page, "IsTruncated") != "true":
                return
            behind["key-marker"] = _text(page, "NextKeyMarker")
            behind[f"{'version-id' if what == 'versions' else 'upload-id'}-marker"] = _text(page, f"Next{marker}Marker")

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
