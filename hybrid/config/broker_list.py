"""Parses bootstrap lists of Kafka brokers, with or without a listener's scheme."""

from __future__ import annotations

import re

from hybrid.errors import SpecError

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_BETWEEN = re.compile(r"[,\s]+")
_SCHEME = re.compile(r"([A-Za-z0-9_+.\-]*)://(.*)")
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[\w.\-]+)(?::(?P<port>[^:]*))?")
# Kafka's default port, which librdkafka takes for an address without one.
_PORT, _PORT_MAX = "9092", 65535


def plain_brokers(text: str, place: str, protocol: str | None = None) -> str:
    """The list as host:port, separated by commas. `protocol` is the `security.protocol` of the same config, if any.

    SpecError at `place` for an empty list, and for an address with a path or credentials. Also for a scheme that is
    not Kafka's or differs from `protocol`.
    """
    addresses = [_plain(address, place, protocol) for address in _BETWEEN.split(text) if address]
    if not addresses:
        raise SpecError(f"{place}: names no broker. Write host:port, with commas between several.")
    return ",".join(addresses)


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
    parts = _ADDRESS.fullmatch(rest)
    if parts is None:
        why = "an IPv6 address stands in brackets" if rest.count(":") > 1 else "the address of a broker is host:port"
        raise SpecError(f"{place}: '{shown}' cannot be read: {why}. Several have commas between them.")
    port = parts["port"] if parts["port"] is not None else _PORT
    if not (port.isascii() and port.isdigit() and 0 < int(port) <= _PORT_MAX):
        raise SpecError(
            f"{place}: '{shown}' has no port from 1 to {_PORT_MAX}. Write host:port, e.g. {parts['host']}:{_PORT}."
        )
    return f"{parts['host']}:{int(port)}"


def _check_scheme(scheme: str, address: str, place: str, protocol: str | None) -> None:
    if scheme.upper() not in PROTOCOLS:
        schemes = ", ".join(PROTOCOLS)
        raise SpecError(
            f"{place}: '{address}': {scheme}:// is no listener of Kafka's. Write host:port, or one of {schemes}."
        )
    used = (protocol or "PLAINTEXT").upper()
    if scheme.upper() != used:
        raise SpecError(
            f"{place}: '{address}' says {scheme.upper()}, and security.protocol is {used}.",
            hint=f"Set security.protocol to {scheme.upper()} with what belongs to it, or write the address without a "
            "scheme.",
        )
