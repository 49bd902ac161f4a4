"""The URL of an object store: whose protocol, which bucket, and below which prefix. Nothing secret may stand in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from hybrid.errors import SpecError


class StoreKind(StrEnum):
    """The protocol that a store speaks, by the scheme of its URLs."""

    S3 = "s3"
    AZURE = "az"
    GOOGLE = "gs"


_NAMES = {
    StoreKind.S3: (
        re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"),
        "3 to 63 lower case letters, digits, hyphens and dots: s3://bucket/prefix",
    ),
    StoreKind.AZURE: (
        re.compile(r"(?=.{3,63}$)[a-z0-9]+(?:-[a-z0-9]+)*"),
        "3 to 63 lower case letters, digits and single hyphens between them: az://container/prefix",
    ),
    StoreKind.GOOGLE: (
        re.compile(r"[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]"),
        "3 to 63 lower case letters, digits, hyphens, underscores and dots: gs://bucket/prefix",
    ),
}
_FROM_ENVIRONMENT = {
    StoreKind.S3: "Give keys, region and endpoint in the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
    StoreKind.AZURE: "Give account and key in the environment: AZURE_STORAGE_ACCOUNT_NAME, AZURE_STORAGE_ACCOUNT_KEY.",
    StoreKind.GOOGLE: "Name the file with the key in the environment: GOOGLE_SERVICE_ACCOUNT.",
}
_OTHER_SPELLINGS = {
    **dict.fromkeys(("abfs", "abfss", "wasb", "wasbs", "azure", "adl"), "az://container/prefix"),
    "gcs": "gs://bucket/prefix",
    **dict.fromkeys(("s3a", "s3n"), "s3://bucket/prefix"),
}


@dataclass(frozen=True)
class StoreLocation:
    """A bucket (Azure: container) of a store, and the prefix in it without slashes around it; empty: all of it."""

    bucket: str
    prefix: str = ""
    kind: StoreKind = StoreKind.S3

    @property
    def url(self) -> str:
        """The URL, as errors and outputs show it."""
        return f"{self.kind}://{self.bucket}/{self.prefix}" if self.prefix else f"{self.kind}://{self.bucket}"


def parse_location(url: str) -> StoreLocation:
    """The location that a URL names: `s3://bucket/prefix`, `az://container/prefix` or `gs://bucket/prefix`.

    SpecError for other schemes, for names that no bucket has, and for URLs with a login, parameters or a fragment. The
    error does not show these.
    """
    kind, rest = _kind_of(url)
    if re.search(r"[@?#]", rest):
        raise SpecError(
            f"{hide_secrets(url)}: a store's URL has no login, parameters or fragment.",
            hint=_FROM_ENVIRONMENT[kind],
        )
    bucket, _, prefix = rest.partition("/")
    pattern, rule = _NAMES[kind]
    if not pattern.fullmatch(bucket):
        what = "container" if kind is StoreKind.AZURE else "bucket"
        raise SpecError(f"'{bucket}' in {url} cannot be the name of a {what}.", hint=rule)
    prefix = prefix.strip("/")
    if any(part in {"", ".", ".."} for part in prefix.split("/")) and prefix:
        raise SpecError(f"The prefix of {url} has an empty part, '.' or '..'.")
    location = StoreLocation(bucket, prefix, kind)
    check_key(location, prefix)
    return location


def _kind_of(url: str) -> tuple[StoreKind, str]:
    """The protocol of a URL, and what follows its scheme."""
    scheme, separator, rest = url.partition("://")
    scheme = scheme.lower() if separator else ""
    if scheme in set(StoreKind):
        return StoreKind(scheme), rest
    if scheme in _OTHER_SPELLINGS:
        raise SpecError(
            f"'{hide_secrets(url)}' has another form than the URLs here: {_OTHER_SPELLINGS[scheme]}.",
            hint="Account, keys and endpoint are no part of the URL. Give them in the environment.",
        )
    raise SpecError(
        f"'{hide_secrets(url)}' is not the URL of an object store that can be used: s3://bucket/prefix.",
        hint="S3 and stores that speak its protocol (endpoint in AWS_ENDPOINT_URL), az://container/prefix, "
        "gs://bucket/prefix.",
    )


def check_key(location: StoreLocation, key: str) -> None:
    """SpecError for a key that a store does not keep as it is: Azure takes dots away at the end of a part."""
    if location.kind is StoreKind.AZURE and any(part.endswith(".") for part in key.split("/")):
        raise SpecError(f"{location.url}: Azure keeps no name with a part that ends with a dot, as in {key}.")


def hide_secrets(url: str) -> str:
    """The URL without login, parameters and fragment; each that is left out is shown as `***`."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, rest = "", url
    place, mark, _ = re.sub(r"[?#]", "\0", rest, count=1).partition("\0")
    *login, place = place.rpartition("@") if "@" in place else ("", place)
    shown = f"***@{place}" if any(login) else place
    return f"{scheme}{separator}{shown}{'?***' if mark else ''}"


def check_endpoint(endpoint: str, variable: str = "AWS_ENDPOINT_URL") -> str:
    """The endpoint as it was given. SpecError for one that is no http(s) URL, or that has a login or parameters."""
    parts = urlsplit(endpoint)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or parts.query:
        raise SpecError(
            f"The endpoint {hide_secrets(endpoint)} is not a URL such as https://store.example.org, without a login.",
            hint=f"Set {variable} to the store's endpoint.",
        )
    return endpoint
