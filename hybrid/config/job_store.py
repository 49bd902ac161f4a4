"""Reads a job spec's input on an object store: an address of S3, and its credentials in Pinot's `pinotFSSpecs`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hybrid.errors import DataError
from hybrid.schema.document import Section
from hybrid.schema.references import check_references, has_reference, resolve

_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,254}", re.ASCII)
_SCHEMES = {"s3", "s3a", "s3n"}
_CONFIGS = {"accessKey", "secretKey", "region", "endpoint", "anonymousCredentialsProvider"}
# How Pinot writes to S3, and its identity there: ignored without a warning.
_QUIET = {"disableAcl", "storageClass", "serverSideEncryption", "ssekmsKeyId", "iamRoleBasedAccessEnabled"}


@dataclass(frozen=True)
class ObjectStore:
    """A bucket with a key or a key prefix. `options` are Pinot's keys of S3PinotFS, secrets included.

    Without an accessKey credentials are taken from the usual places: environment, profile, the machine's role.
    """

    bucket: str
    key: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def has_references(self) -> bool:
        """Whether an option refers to a variable or a file of the machine."""
        return any(has_reference(value) for value in self.options.values())

    def resolved_options(self) -> dict[str, str]:
        """The options with references resolved. DataError for a reference to a missing value."""
        return {key: resolve(text, f"{key} of pinotFSSpecs", DataError) for key, text in self.options.items()}

    @property
    def address(self) -> str:
        """`s3://bucket/key`."""
        return f"s3://{self.bucket}/{self.key}".rstrip("/")


def is_on_store(uri: str) -> bool:
    """Whether an input's address is on S3."""
    scheme, separator, _ = uri.partition("://")
    return bool(separator) and scheme.lower() in _SCHEMES


def parse_store(top: Section, uri: str) -> ObjectStore:
    """The store and key at `uri`, with the options in the `pinotFSSpecs` of `top` for its scheme."""
    scheme, _, rest = uri.partition("://")
    bucket, _, key = rest.partition("/")
    if not _BUCKET.fullmatch(bucket):
        top.fail("inputDirURI", f"'{uri}' names no bucket. Write it like s3://bucket/folder.")
    options: dict[str, str] = {}
    for section in _specs_of(top, scheme):
        configs = section.section("configs")
        section_options = {name: str(configs.doc[name]) for name in _CONFIGS if configs.doc.get(name) is not None}
        for name, text in section_options.items():
            check_references(configs, name, text)
        options |= section_options
    return ObjectStore(bucket, key.strip("/"), options)


def store_warnings(top: Section, uri: str) -> Iterator[str]:
    """One warning for each option that is not implemented."""
    for section in _specs_of(top, uri.partition("://")[0]):
        yield from section.section("configs").unknown(_CONFIGS | _QUIET)


def _specs_of(top: Section, scheme: str) -> Iterator[Section]:
    for section in top.sections("pinotFSSpecs"):
        if str(section.doc.get("scheme")).lower() == scheme.lower():
            yield section
