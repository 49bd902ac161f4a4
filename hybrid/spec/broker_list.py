"""Addresses of Kafka's brokers as people and other clients write them: with or without a listener's scheme."""

from __future__ import annotations

import re

from hybrid.errors import SpecError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_SCHEME = re.compile(r"([A-Za-z0-9_+.\-]*)://(.*)")


def plain_brokers(text: str, place: str, protocol: str | None = None) -> str:
    """The list as host:port, with commas between. `protocol` is the `security.protocol` beside it, if there is one.

    SpecError at `place` for a scheme that is no protocol of Kafka's, or another one than `protocol`.
    """
    found = [_plain(address.strip(), place, protocol) for address in text.split(",")]
    return ",".join(address for address in found if address)


def _plain(address: str, place: str, protocol: str | None) -> str:
    match = _SCHEME.fullmatch(address)
    if match is None:
        return address
    scheme, rest = match[1].upper(), match[2].rstrip("/")
    if scheme not in PROTOCOLS:
        known = ", ".join(PROTOCOLS)
        raise SpecError(
            f"{place}: '{address}': {match[1]}:// is no listener of Kafka's. Write host:port, or one of {known}."
        )
    used = (protocol or "PLAINTEXT").upper()
    if scheme != used:
        raise SpecError(
            f"{place}: '{address}' says {scheme}, and security.protocol is {used}.",
            hint=f"Set security.protocol to {scheme} with what belongs to it, or write the address without a scheme.",
        )
    return rest
