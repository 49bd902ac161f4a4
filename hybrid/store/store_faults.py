"""What has gone wrong at an object store, by kind, and the errors that say so.

obstore tells status and cause in the text of its exceptions alone. A store's answer may repeat parts of a request, so
nothing of it is shown but the name of its error. `tests/store` holds the texts that are read here against real servers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from hybrid.errors import StoreError
from hybrid.store.store_location import StoreLocation
from hybrid.store.store_remedies import fault_sentence, remedy


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


_STATUS = re.compile(r"(?:status code:|status:|\(code:) (\d{3})\b")
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
    **dict.fromkeys(("BlobNotFound", "PathNotFound"), Fault.MISSING),  # Azure's names from here on
    **dict.fromkeys(("BlobAlreadyExists", "ConditionNotMet", "TargetConditionNotMet"), Fault.CONDITION),
    **dict.fromkeys(
        (
            "ContainerNotFound",
            "ContainerBeingDeleted",
            "ContainerDisabled",
            "FilesystemNotFound",
            "InvalidResourceName",
        ),
        Fault.BUCKET,
    ),
    **dict.fromkeys(
        (
            "AuthorizationFailure",
            "AuthorizationPermissionMismatch",
            "AuthorizationProtocolMismatch",
            "AuthorizationResourceTypeMismatch",
            "AuthorizationServiceMismatch",
            "AuthorizationSourceIPMismatch",
            "InsufficientAccountPermissions",
            "AccountIsDisabled",
            "PublicAccessNotPermitted",
            "LeaseIdMissing",
            "BlobImmutableDueToPolicy",
            "BlobImmutableDueToLegalHold",
        ),
        Fault.PERMISSION,
    ),
    **dict.fromkeys(
        (
            "AuthenticationFailed",
            "InvalidAuthenticationInfo",
            "NoAuthenticationInformation",
            "KeyBasedAuthenticationNotPermitted",
        ),
        Fault.CREDENTIALS,
    ),
    **dict.fromkeys(("ServerBusy", "OperationTimedOut"), Fault.UNREACHABLE),
    "AuthenticationRequired": Fault.CREDENTIALS,  # Google's names from here on
    **dict.fromkeys(("AccountProblem", "InvalidSecurity", "UserProjectMissing"), Fault.PERMISSION),
    **dict.fromkeys(("RateLimitExceeded", "rateLimitExceeded"), Fault.UNREACHABLE),
}
_AZURE_DELETE, _AZURE_NO_CONTAINER = "Bulk delete request failed for key", "The specified container does not exist"
# Azure has one name for a wrong key, an expired signature and a wrong clock; a detail beside it tells which.
_AZURE_REFUSAL = "Server failed to authenticate the request"
_BY_DETAIL = (
    ("Request date header too old", Fault.CLOCK, "RequestDateTooOld"),
    ("not valid in the specified time frame", Fault.EXPIRED, "SignatureNotValidNow"),
    ("token is expired", Fault.EXPIRED, "TokenExpired"),
)
# Of the services that give tokens for keys: Google's, and Microsoft Entra's with a number of its own.
_TOKEN_REQUEST = "Error performing token request"
_TOKEN_ERROR = re.compile(r'"error"\s*:\s*"(\w{1,64})"')
_BY_TOKEN_DETAIL = (
    ("AADSTS7000222", Fault.EXPIRED),
    ("AADSTS700024", Fault.CLOCK),
    ("reasonable timeframe", Fault.CLOCK),
)
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
_METADATA_SERVICE = re.compile(
    r"169\.254\.|fd00:ec2|/latest/(?:api/token|meta-data)|AssumeRoleWithWebIdentity|/computeMetadata/|/metadata/identity"
)


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
    if 400 <= number < 500 and (refusal := _refused_sign_in(text, code[1] if code is not None else "")):
        return refusal
    if code is not None and code[1] in _BY_CODE:
        return StoreFailure(_BY_CODE[code[1]], code[1], may_be_done)
    if number:
        fault = Fault.UNREACHABLE if may_be_done else _BY_STATUS.get(number, Fault.OTHER)
        if number == 404 and _AZURE_DELETE in text:  # the part of an answer for one object has no name
            fault = Fault.BUCKET if _AZURE_NO_CONTAINER in text else Fault.MISSING
        return StoreFailure(fault, code[1] if code is not None else f"HTTP status {number}", may_be_done)
    if "redirect without LOCATION" in text:
        return StoreFailure(Fault.REGION, "a redirect to another region")
    if kind := _KIND.search(text):
        cause = next((cause for word, cause in _CAUSES if word in text), f"the request failed ({kind[1]})")
        return StoreFailure(Fault.UNREACHABLE, cause, may_be_done=kind[1] != "Connect")
    if "az account get-access-token" in text:
        return StoreFailure(Fault.CREDENTIALS, "az account get-access-token failed")
    return StoreFailure(Fault.OTHER, type(error).__name__, may_be_done=True)


def _refused_sign_in(text: str, code: str) -> StoreFailure | None:
    """The kind of a refusal that says more than its name does: of a signature, or of keys for which a token is."""
    if _TOKEN_REQUEST in text:
        name = _TOKEN_ERROR.search(text)
        fault = next((fault for words, fault in _BY_TOKEN_DETAIL if words in text), Fault.CREDENTIALS)
        return StoreFailure(fault, name[1] if name is not None else "no token for these keys")
    if _AZURE_REFUSAL in text or code in {"AuthenticationFailed", "InvalidAuthenticationInfo"}:
        details = (StoreFailure(fault, cause) for words, fault, cause in _BY_DETAIL if words in text)
        return next(details, StoreFailure(Fault.CREDENTIALS, code or "AuthenticationFailed"))
    return None


def store_error(location: StoreLocation, deed: str, failure: StoreFailure) -> StoreError:
    """The error for a failed request. `deed` says what was tried, such as `read x`."""
    sentence = fault_sentence(location.kind, failure.fault)
    return StoreError(
        f"{location.url}: cannot {deed}. {sentence} ({failure.cause}).",
        hint=remedy(location.kind, failure.fault),
        fault=failure.fault,
    )
