"""What has gone wrong at an object store, by kind, and the errors that say so.

obstore tells status and cause in the text of its exceptions alone. A store's answer may repeat parts of a request, so
nothing of it is shown but the name of its error. `tests/store` holds the texts that are read here against a real store.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from hybrid.errors import StoreError
from hybrid.store.store_location import StoreLocation


class Fault(StrEnum):
    """A kind of failure. `MISSING`, `CONDITION` and `CONFLICT` are answers that `StoreClient` acts on itself."""

    MISSING = "missing"
    CONDITION = "condition"
    CONFLICT = "conflict"
    BUCKET = "bucket"
    REGION = "region"
    PERMISSION = "permission"
    CREDENTIALS = "credentials"
    EXPIRED = "expired"
    CLOCK = "clock"
    UNREACHABLE = "unreachable"
    NO_CONDITIONS = "no-conditions"
    OTHER = "other"


@dataclass(frozen=True)
class StoreFailure:
    """One failed request.

    `cause` is the store's name for its error, or what happened on the way. `may_be_done`: the store may have carried
    out the request, or may still do so.
    """

    fault: Fault
    cause: str
    may_be_done: bool = False

    @property
    def is_passing(self) -> bool:
        """Whether the same request may succeed in a moment."""
        return self.fault in {Fault.UNREACHABLE, Fault.CONFLICT}


_STATUS = re.compile(r"(?:status code:|status:) (\d{3})\b")
_CODE = re.compile(r"<Code>(\w{1,64})</Code>")
_KIND = re.compile(r"HttpError \{\s*kind: (\w+)")
_BY_CODE = {
    "NoSuchKey": Fault.MISSING,
    "PreconditionFailed": Fault.CONDITION,
    "ConditionalRequestConflict": Fault.CONFLICT,
    "OperationAborted": Fault.CONFLICT,
    "NoSuchBucket": Fault.BUCKET,
    "InvalidBucketName": Fault.BUCKET,
    "PermanentRedirect": Fault.REGION,
    "TemporaryRedirect": Fault.REGION,
    "AuthorizationHeaderMalformed": Fault.REGION,
    "IllegalLocationConstraintException": Fault.REGION,
    "AccessDenied": Fault.PERMISSION,
    "AllAccessDisabled": Fault.PERMISSION,
    "InvalidAccessKeyId": Fault.CREDENTIALS,
    "XAdminUserNotFound": Fault.CREDENTIALS,  # versitygw's word for it
    "SignatureDoesNotMatch": Fault.CREDENTIALS,
    "InvalidToken": Fault.CREDENTIALS,
    "ExpiredToken": Fault.EXPIRED,
    "TokenRefreshRequired": Fault.EXPIRED,
    "RequestTimeTooSkewed": Fault.CLOCK,
    "RequestExpired": Fault.CLOCK,
    "NotImplemented": Fault.NO_CONDITIONS,
    "SlowDown": Fault.UNREACHABLE,
    "InternalError": Fault.UNREACHABLE,
    "ServiceUnavailable": Fault.UNREACHABLE,
    "RequestTimeout": Fault.UNREACHABLE,
}
_BY_STATUS = {
    301: Fault.REGION,
    304: Fault.CONDITION,
    307: Fault.REGION,
    401: Fault.CREDENTIALS,
    403: Fault.PERMISSION,
    408: Fault.UNREACHABLE,
    409: Fault.CONFLICT,
    412: Fault.CONDITION,
    429: Fault.UNREACHABLE,
    501: Fault.NO_CONDITIONS,
}
_CAUSES = (
    ("TimedOut", "no answer in time"),
    ("ConnectionRefused", "connection refused"),
    ("dns error", "the host's name is not known"),
    ("InvalidCertificate", "its certificate is not trusted"),
    ("InvalidContentType", "it does not speak TLS"),
    ("IncompleteMessage", "the connection was closed without an answer"),
    ("ConnectionReset", "the connection was reset"),
)
_METADATA_SERVICE = re.compile(r"169\.254\.|fd00:ec2|/latest/(?:api/token|meta-data)|AssumeRoleWithWebIdentity")


def classify(error: BaseException) -> StoreFailure:
    """The kind of a failure, from an exception of obstore, or of a connection of our own (OSError)."""
    if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
        reason = getattr(error, "reason", error)
        return StoreFailure(Fault.UNREACHABLE, getattr(reason, "strerror", None) or str(reason))
    text = str(error)
    if _METADATA_SERVICE.search(text.split("Server returned")[0]):
        return StoreFailure(Fault.CREDENTIALS, "no keys in the environment, and none of this machine's role")
    code, status = _CODE.search(text), _STATUS.search(text)
    number = int(status[1]) if status else 0
    may_be_done = number >= 500 and number != 501
    if code is not None and code[1] in _BY_CODE:
        return StoreFailure(_BY_CODE[code[1]], code[1], may_be_done)
    if number:
        fault = Fault.UNREACHABLE if may_be_done else _BY_STATUS.get(number, Fault.OTHER)
        return StoreFailure(fault, code[1] if code is not None else f"HTTP status {number}", may_be_done)
    if "redirect without LOCATION" in text:
        return StoreFailure(Fault.REGION, "a redirect to another region")
    if kind := _KIND.search(text):
        cause = next((cause for word, cause in _CAUSES if word in text), f"the request failed ({kind[1]})")
        return StoreFailure(Fault.UNREACHABLE, cause, may_be_done=kind[1] != "Connect")
    return StoreFailure(Fault.OTHER, type(error).__name__, may_be_done=True)


_SENTENCES = {
    Fault.BUCKET: "The bucket does not exist",
    Fault.REGION: "The bucket is in another region",
    Fault.PERMISSION: "The store does not permit it",
    Fault.CREDENTIALS: "The store does not accept the keys",
    Fault.EXPIRED: "The session token has expired",
    Fault.CLOCK: "The store refuses the request for its time: this machine's clock is wrong",
    Fault.UNREACHABLE: "The store does not answer",
    Fault.NO_CONDITIONS: "The store does not carry out conditional writes",
    Fault.CONFLICT: "Other writers keep the store from carrying out the request",
}
REMEDIES = {
    Fault.BUCKET: "Create the bucket, or correct its name; AWS_ENDPOINT_URL names a store other than AWS.",
    Fault.REGION: "Set AWS_REGION to the region of the bucket.",
    Fault.PERMISSION: "Permit s3:GetObject, s3:PutObject, s3:DeleteObject below the prefix, and s3:ListBucket.",
    Fault.CREDENTIALS: "Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_SESSION_TOKEN of temporary keys.",
    Fault.EXPIRED: "Fetch new temporary keys, and set all three variables: AWS_SESSION_TOKEN belongs to its keys.",
    Fault.CLOCK: "Let NTP set the clock of this machine.",
    Fault.UNREACHABLE: "Check AWS_ENDPOINT_URL, the network between, and whether the store is up.",
    Fault.NO_CONDITIONS: "Use a store, or a version of it, with If-None-Match and If-Match for PutObject.",
    Fault.CONFLICT: "Repeat it when fewer processes write there.",
}


def store_error(location: StoreLocation, deed: str, failure: StoreFailure) -> StoreError:
    """The error for a failed request. `deed` says what was tried, such as `read x`."""
    sentence = _SENTENCES.get(failure.fault, "The store refuses the request")
    return StoreError(
        f"{location.url}: cannot {deed}. {sentence} ({failure.cause}).",
        hint=REMEDIES.get(failure.fault),
        fault=failure.fault,
    )
