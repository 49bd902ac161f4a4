"""Addresses of Kafka's brokers as people and other clients write them: with or without a listener's scheme."""

from __future__ import annotations

import re

from hybrid.errors import SpecError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_BETWEEN = re.compile(r"[,\s]+")
_SCHEME = re.compile(r"([A-Za-z0-9_+.\-]*)://(.*)")
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[\w.\-]+)(?::(?P<port>[^:]*))?")
# Kafka's own, where an address has none, as librdkafka reads it.
_PORT, _PORT_MAX = "9092", 65535


def plain_brokers(text: str, place: str, protocol: str | None = None) -> str:
    """The list as host:port, with commas between. `protocol` is the `security.protocol` beside it, if there is one.

    SpecError at `place` for a scheme that is no protocol of Kafka's, or another one than `protocol`; for an address
    with a path or with credentials; and for a list without any.
    """
    found = [_plain(address, place, protocol) for address in _BETWEEN.split(text) if address]
    if not found:
        raise SpecError(f"{place}: names no broker. Write host:port, with commas between several.")
    return ",".join(found)


def _plain(address: str, place: str, protocol: str | None) -> str:
    shown = address
    if "@" in address:  # a password is not shown
        shown = f"...@{address.rpartition('@')[2]}"
        raise SpecError(
            f"{place}: '{shown}': the address of a broker holds no name and password.",
            hint="Set security.protocol, sasl.mechanism and what belongs to them.",
        )
    match = _SCHEME.fullmatch(address)
    rest = (match[2] if match is not None else address).rstrip("/")
    if match is not None:
        _check_scheme(match[1], address, place, protocol)
    if re.search(r"[/?#]", rest):
        raise SpecError(
            f"{place}: '{shown}' has a path; the address of a broker is host:port. (ZooKeeper's addresses have paths; "
            "brokers are asked here.)"
        )
    found = _ADDRESS.fullmatch(rest)
    if found is None:
        why = "an IPv6 address stands in brackets" if rest.count(":") > 1 else "the address of a broker is host:port"
        raise SpecError(f"{place}: '{shown}' cannot be read: {why}. Several have commas between them.")
    port = found["port"] if found["port"] is not None else _PORT
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= _PORT_MAX):
        raise SpecError(
            f"{place}: '{shown}' has no port from 1 to {_PORT_MAX}. Write host:port, e.g. {found['host']}:{_PORT}."
        )
    return f"{found['host']}:{int(port)}"


def _check_scheme(scheme: str, address: str, place: str, protocol: str | None) -> None:
    if scheme.upper() not in PROTOCOLS:
        known = ", ".join(PROTOCOLS)
        raise SpecError(
            f"{place}: '{address}': {scheme}:// is no listener of Kafka's. Write host:port, or one of {known}."
        )
    used = (protocol or "PLAINTEXT").upper()
    if scheme.upper() != used:
        raise SpecError(
            f"{place}: '{address}' says {scheme.upper()}, and security.protocol is {used}.",
            hint=f"Set security.protocol to {scheme.upper()} with what belongs to it, or write the address without a "
            "scheme.",
        )
