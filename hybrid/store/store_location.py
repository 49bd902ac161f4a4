"""The URL of an object store: which bucket, and below which prefix. Nothing secret may stand in it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from hybrid.errors import SpecError

_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_FROM_ENVIRONMENT = "Give keys, region and endpoint in the environment: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."


@dataclass(frozen=True)
class StoreLocation:
    """A bucket of an S3 store, and the prefix in it without slashes around it; empty: the whole bucket."""

    bucket: str
    prefix: str = ""

    @property
    def url(self) -> str:
        """The URL, as errors and outputs show it."""
        return f"s3://{self.bucket}/{self.prefix}" if self.prefix else f"s3://{self.bucket}"


def parse_location(url: str) -> StoreLocation:
    """The location that a URL `s3://bucket/prefix` names.

    SpecError for other schemes, for names that no bucket has, and for URLs with a login, parameters or a fragment. The
    error does not show these.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.lower() != "s3":
        raise SpecError(
            f"'{hide_secrets(url)}' is not the URL of an object store that can be used: s3://bucket/prefix.",
            hint="Only S3, and stores that speak its protocol: name another store's endpoint in AWS_ENDPOINT_URL.",
        )
    if re.search(r"[@?#]", rest):
        raise SpecError(
            f"{hide_secrets(url)}: a store's URL has no login, parameters or fragment.",
            hint=_FROM_ENVIRONMENT,
        )
    bucket, _, prefix = rest.partition("/")
    if not _BUCKET.fullmatch(bucket):
        raise SpecError(
            f"'{bucket}' in {url} cannot be the name of a bucket.",
            hint="3 to 63 lower case letters, digits, hyphens and dots: s3://bucket/prefix",
        )
    prefix = prefix.strip("/")
    if any(part in {"", ".", ".."} for part in prefix.split("/")) and prefix:
        raise SpecError(f"The prefix of {url} has an empty part, '.' or '..'.")
    return StoreLocation(bucket, prefix)


def hide_secrets(url: str) -> str:
    """The URL without login, parameters and fragment; each that is left out is shown as `***`."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, rest = "", url
    place, mark, _ = re.sub(r"[?#]", "\0", rest, count=1).partition("\0")
    *login, place = place.rpartition("@") if "@" in place else ("", place)
    shown = f"***@{place}" if any(login) else place
    return f"{scheme}{separator}{shown}{'?***' if mark else ''}"


def check_endpoint(endpoint: str) -> str:
    """The endpoint as it was given. SpecError for one that is no http(s) URL, or that has a login or parameters."""
    parts = urlsplit(endpoint)
    if parts.scheme not in {"http", "https"} or not parts.hostname or "@" in parts.netloc or parts.query:
        raise SpecError(
            f"The endpoint {hide_secrets(endpoint)} is not a URL such as https://s3.example.org, without a login.",
            hint="Set AWS_ENDPOINT_URL to the store's endpoint.",
        )
    return endpoint
