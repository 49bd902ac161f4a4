"""Authentication: the account that a request names, and whether its right suffices.

Once a home has an account, every request needs one, also from this machine. A server that other machines reach
is `closed`: without any account it refuses everybody. The command line on the home has its own secret, which
`hybrid serve` writes to `server.json` at each start.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import json
import logging
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from hybrid.errors import AccessError, HybridError, RightError
from hybrid.home.accounts import ASKING_ACCOUNT, ASKING_RIGHT, Account, Accounts, Right, digest_of
from hybrid.logs import log_context
from hybrid.rpc.client import SERVER_FILE
from hybrid.serve.authorization import OPEN_PATHS
from hybrid.serve.sessions import is_open_page, session_account, session_value

_LOG = logging.getLogger(__name__)
_KNOWN_MAX = 256
HOME_ACCOUNT = "(home)"  # no account can have this name
_HINT = "Authorization: Bearer SECRET, or Basic with NAME:SECRET; hybrid --token SECRET (HYBRID_TOKEN)."
_Stamp = tuple[int, int, int] | None


class Authentication:
    """The accounts of a home, cached in memory. Every `look_s` seconds it is checked whether their file changed."""

    def __init__(self, home: Path, closed: bool = False, look_s: float = 1.0) -> None:
        self._accounts, self._server_file, self._closed = Accounts(home), home / SERVER_FILE, closed
        self._look_s = look_s
        self._known: dict[bytes, Account] = {}
        self._there: tuple[Account, ...] = ()
        self._session_key = self._own_key = secrets.token_hex(32)
        self._needed = True
        self._stamps: tuple[_Stamp, _Stamp] | None = None
        self._looked_at = 0.0

    def account(
        self, path: str, header: bytes | None, peer: str | None = None, session: str | None = None
    ) -> Account | None:
        """Return the account of an Authorization header, else of a session; None where none is needed.

        AccessError for an unknown account. `peer` is the client's address: the home's own secret is accepted from this
        machine only.
        """
        if path in OPEN_PATHS or is_open_page(path):
            return None
        if time.monotonic() - self._looked_at > self._look_s:
            self._look()
        if not self._needed:
            return None
        if header is None and session is not None:
            return self._in_session(session)
        if header is None:
            raise AccessError("This server answers those who name an account.", hint=_HINT)
        account = self._known.get(header) or self._found(header)
        if account.name == HOME_ACCOUNT and not is_loopback(peer):
            raise AccessError("The home's own secret is for this machine only.", hint=_HINT)
        return account

    def is_of_home(self, header: bytes) -> bool:
        """Whether an Authorization header has the home's own secret, which is for this machine only."""
        try:
            return (self._known.get(header) or self._found(header)).name == HOME_ACCOUNT
        except AccessError:
            return False

    @property
    def needs_account(self) -> bool:
        """Whether requests need an account."""
        self._look()
        return self._needed

    def sign_in(self, secret: str) -> tuple[Account, str]:
        """Return the account with this secret and a session of it. AccessError when no account has the secret."""
        account = self._found(b"Bearer " + secret.encode("utf-8", "surrogateescape"))
        if account.name == HOME_ACCOUNT:
            raise AccessError("The home's own secret is for its command line.", hint="hybrid access add NAME")
        return account, session_value(account, self._session_key, time.time())

    def _in_session(self, session: str) -> Account:
        accounts = (account for account in self._there if account.name != HOME_ACCOUNT)
        account = session_account(session, accounts, self._session_key, time.time())
        if account is None:
            raise AccessError("The session has ended.", hint=_HINT)
        return account

    def may_see_details(self, header: bytes | None, peer: str | None = None) -> bool:
        """Whether an open route may show names and paths: the caller has an account, or none is needed."""
        try:
            self.account("", header, peer)
        except AccessError:
            return False
        return True

    def _found(self, header: bytes) -> Account:
        name, secret = _read(header)
        self._look()  # the account may be new
        digest = digest_of(secret)
        for account in self._there:
            if name in (None, account.name) and account.has(digest):
                if len(self._known) >= _KNOWN_MAX:
                    self._known.clear()
                self._known[header] = account
                return account
        raise AccessError("No account has this secret" + (" and this name." if name is not None else "."), hint=_HINT)

    def _look(self) -> None:
        self._looked_at = time.monotonic()
        stamps = _stamp(self._accounts.path), _stamp(self._server_file)
        if stamps == self._stamps:
            return
        self._known.clear()
        try:
            accounts, self._needed = self._accounts.list(), self._closed
        except HybridError as error:  # an unreadable file of accounts admits nobody
            _LOG.error("%s Until then nobody is let in.", error)
            accounts, self._needed = (), True
        self._needed = self._needed or bool(accounts)
        own = tuple(self._home())
        self._there = (*accounts, *own)
        self._session_key = own[0].digest if own else self._own_key
        self._stamps = stamps

    def _home(self) -> Iterator[Account]:
        try:
            secret = json.loads(self._server_file.read_text(encoding="utf-8"))["secret"]
        except (OSError, ValueError, LookupError, TypeError):
            return
        yield Account(HOME_ACCOUNT, Right.ADMIN, digest_of(str(secret)), "")


def is_loopback(peer: str | None) -> bool:
    """Whether a connection's peer is this machine. None: no network in between (a socket file, a test)."""
    if peer is None:
        return True
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)  # ::ffff:127.0.0.1
    return (mapped or address).is_loopback


def may_pass(account: Account | None, needed: Right, method: str, path: str) -> None:
    """RightError if the account lacks the right that a request needs."""
    if account is not None and account.right < needed:
        raise RightError(
            f"Account '{account.name}' has the right {account.right.word}; {method} {path[:200]} takes {needed.word}.",
            hint=f"hybrid access add NAME --right {needed.word}",
        )


def asking(account: Account | None) -> AbstractContextManager[None]:
    """Attribute the work in this context to an account, also in log records."""
    return nullcontext() if account is None or account.name == HOME_ACCOUNT else _asking(account)


@contextmanager
def _asking(account: Account) -> Iterator[None]:
    name, right = ASKING_ACCOUNT.set(account.name), ASKING_RIGHT.set(account.right)
    try:
        with log_context(account=account.name):
            yield
    finally:
        ASKING_RIGHT.reset(right)
        ASKING_ACCOUNT.reset(name)


def who_asks() -> str | None:
    """Return the name of the current request's account; None for the home's own command line."""
    return ASKING_ACCOUNT.get()


def may_operate() -> bool:
    """Whether the current request has at least the right to operate; always true without accounts."""
    right = ASKING_RIGHT.get()
    return right is None or right >= Right.OPERATE


def _read(header: bytes) -> tuple[str | None, str]:
    """Return name (None: any) and secret of an Authorization header. Errors do not repeat its content."""
    scheme, _, rest = header.decode("latin-1").strip().partition(" ")
    kind, text = scheme.lower(), rest.strip()
    if kind == "bearer" and text:
        return None, text
    if kind != "basic":
        raise AccessError("The Authorization header is neither 'Bearer SECRET' nor 'Basic ...'.", hint=_HINT)
    try:
        name, colon, secret = base64.b64decode(text, validate=True).decode("utf-8").partition(":")
    except (binascii.Error, ValueError):
        raise AccessError("What follows 'Basic' in Authorization is not base64 of text.", hint=_HINT) from None
    if not colon:
        raise AccessError("What follows 'Basic' in Authorization is not NAME:SECRET.", hint=_HINT)
    return name, secret


def _stamp(path: Path) -> _Stamp:
    """Return a value that changes with the file's content or permissions."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ctime_ns, status.st_ino, status.st_size
