"""Which query servers hold which tables: rendezvous hashing over the list of servers (docs/adr/0070).

Each server gets a weight for each table, a hash of both, and the `copies` heaviest servers hold the table. So every
server finds the same holders from the same list, without asking anybody, and a server that is added or removed moves
only its own share of the tables.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from hybrid.errors import SpecError

_SECTION = "pinning"
_EXAMPLE = 'servers = ["http://q1:8099", "http://q2:8099"] under [pinning] in hybrid.toml, the same on each server.'


@dataclass(frozen=True)
class Pinning:
    """The query servers by URL, this server's URL among them, and how many of them hold each table.

    `together` are groups of tables that the same servers hold: a group is placed by its first name.
    """

    servers: tuple[str, ...]
    own: str
    copies: int
    together: tuple[tuple[str, ...], ...] = ()
    _first: dict[str, str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        first = {name: group[0] for group in self.together for name in group}
        object.__setattr__(self, "_first", first)

    def holders(self, table: str) -> tuple[str, ...]:
        """The servers that hold a table, in the order in which they are asked."""
        name = self._first.get(table, table)
        return tuple(sorted(self.servers, key=lambda server: (-weight(server, name), server))[: self.copies])

    def is_here(self, table: str) -> bool:
        """Whether this server holds a table."""
        return self.own in self.holders(table)

    def holders_of_all(self, tables: Sequence[str]) -> tuple[str, ...]:
        """The servers that hold all of these tables, in the order of the first table's; none: no server does."""
        others = [set(self.holders(table)) for table in tables[1:]]
        return tuple(server for server in self.holders(tables[0]) if all(server in held for held in others))


def weight(server: str, table: str) -> int:
    """The weight of a server for a table: the same on every machine and in every version."""
    return int.from_bytes(hashlib.blake2b(f"{server}\n{table}".encode(), digest_size=8).digest())


def parse_pinning(
    servers: str | None, own: str | None, copies: int, together: str | None, warehouse: str | None
) -> Pinning | None:
    """The settings of `[pinning]` as an object; None where there are none.

    `servers` is separated by commas; `together` by semicolons, each group by commas. SpecError names the setting.
    """
    if servers is None:
        if own is not None or together is not None:
            name = "self" if own is not None else "together"
            raise _error(name, "is set, but 'servers' is not.", f"Set {_EXAMPLE}")
        return None
    urls = [normal_url("servers", part) for part in _parts(servers, ",")]
    _refuse_repeated("servers", urls, "Name each server once.")
    if not urls:
        raise _error("servers", "names no server.", f"Set {_EXAMPLE}")
    if warehouse is None:
        raise _error(
            "servers",
            "is set, but the tables of this home are on no store: 'warehouse' is not set.",
            'Set warehouse = "s3://bucket/prefix" in hybrid.toml, or take [pinning] out.',
        )
    if own is None:
        raise _error(
            "self", "is missing: this server does not know which one it is.", f'Set self = "{urls[0]}", or its own.'
        )
    own = normal_url("self", own)
    if own not in urls:
        raise _error(
            "self", f"{own} is not among 'servers': {', '.join(urls)}.", "Write it there, as on the other servers."
        )
    if not 1 <= copies <= len(urls):
        raise _error(
            "copies",
            f"{copies} is not between 1 and {len(urls)}, the number of 'servers'.",
            "Set copies to how many servers shall hold each table.",
        )
    return Pinning(tuple(urls), own, copies, tuple(_groups(together)))


def normal_url(setting: str, text: str) -> str:
    """A server's URL in the form that is hashed: scheme, host in lower case, port. SpecError for anything else."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise _error(setting, f"'{text}' is not the URL of a server.", "Write it like http://q1:8099")
    if parts.username is not None or parts.path.strip("/") or parts.query or parts.fragment:
        raise _error(
            setting, f"The URL at {parts.hostname} has more than a host and a port.", "Write it like http://q1:8099"
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}:{port or (443 if parts.scheme == 'https' else 80)}"


def _groups(together: str | None) -> Sequence[tuple[str, ...]]:
    groups = [tuple(_parts(text, ",")) for text in _parts(together or "", ";")]
    for group in groups:
        if len(group) < 2:
            raise _error(
                "together",
                f"{', '.join(group)} stands alone.",
                'A group has at least two tables: together = [["orders", "customers"]]',
            )
    names = [name for group in groups for name in group]
    _refuse_repeated("together", names, "Put a table into one group, once.")
    return groups


def _refuse_repeated(setting: str, names: Sequence[str], hint: str) -> None:
    for place, name in enumerate(names):
        if name in names[:place]:
            raise _error(setting, f"{name} is named twice.", hint)


def _parts(text: str, separator: str) -> list[str]:
    return [part.strip() for part in text.split(separator) if part.strip()]


def _error(setting: str, message: str, hint: str) -> SpecError:
    return SpecError(f"{_SECTION}.{setting}: {message}", hint=hint)
