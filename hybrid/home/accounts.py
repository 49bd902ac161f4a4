"""The accounts of a home: who may use its server, with which right. Stored in `<home>/access.json`, a private file.

Secrets are generated here from 256 random bits, and only their SHA-256 is stored. A slow hash would protect secrets
that people invent; nobody can try 2**256.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from hybrid.clock import wall_clock_ms
from hybrid.errors import AccessError, ConflictError, NotFoundError, RightError, SpecError, UsageError
from hybrid.runtime import durable
from hybrid.runtime.file_lock import file_lock
from hybrid.runtime.json_values import stamp

ACCESS_FILE = "access.json"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")  # no colon: Basic authentication sends NAME:SECRET
_SECRET_BYTES = 32


class Right(IntEnum):
    """The rights of accounts; each one includes the lower ones."""

    READ = 1
    OPERATE = 2
    ADMIN = 3

    @property
    def word(self) -> str:
        """The right as users write it: `read`."""
        return self.name.lower()


@dataclass(frozen=True)
class Account:
    """A name with a right; `digest` is the SHA-256 of its secret, in hex."""

    name: str
    right: Right
    digest: str
    created_at: str

    def has(self, digest: str) -> bool:
        """Whether its secret has this digest, compared in constant time."""
        return hmac.compare_digest(self.digest, digest)


# Right and name of the account that made the current request; None outside of requests by accounts.
ASKING_RIGHT: ContextVar[Right | None] = ContextVar("hybrid_right", default=None)
ASKING_ACCOUNT: ContextVar[str | None] = ContextVar("hybrid_account", default=None)


class Accounts:
    """The accounts in a home's file. Servers on the home see a change within a second."""

    def __init__(self, home: Path) -> None:
        self._home, self.path = home, home / ACCESS_FILE

    def list(self) -> tuple[Account, ...]:
        """All accounts, oldest first. SpecError when the file cannot be read."""
        try:
            entries = json.loads(self.path.read_text(encoding="utf-8"))["accounts"]
            return tuple(
                Account(entry["name"], Right[entry["right"].upper()], str(entry["sha256"]), entry["created_at"])
                for entry in entries
            )  # fmt: skip
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise SpecError(
                f"The accounts in {self.path} cannot be read ({type(error).__name__}).",
                hint="Mend the file, or remove it and add the accounts again.",
            ) from error

    def add(self, name: str, right: Right) -> tuple[Account, str]:
        """Add an account. Returns it and its secret, which cannot be retrieved later."""
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"'{name}' is no name for an account: at most 64 letters, digits and . _ @ -, a letter or digit first."
            )
        secret = new_secret()
        added = Account(name, right, digest_of(secret), stamp(wall_clock_ms()))
        with self._alone():
            there = self.list()
            if any(account.name == name for account in there):
                raise ConflictError(f"Account '{name}' exists already.", hint=f"hybrid access remove {name}")
            self._write([*there, added])
        return added, secret

    def remove(self, name: str) -> Account:
        """Remove an account. Returns it."""
        with self._alone():
            there = self.list()
            account = next((candidate for candidate in there if candidate.name == name), None)
            if account is None:
                raise NotFoundError.named("Account", name, [candidate.name for candidate in there])
            self._write([candidate for candidate in there if candidate is not account])
        return account

    def check(self, secret: str, right: Right, what: str) -> None:
        """AccessError when no account has this secret, RightError when the right of its account is lower than `right`.

        In a home without accounts nothing is checked, as on a server on loopback.
        """
        accounts, digest = self.list(), digest_of(secret)
        if not accounts:
            return
        account = next((candidate for candidate in accounts if candidate.has(digest)), None)
        if account is None:
            raise AccessError(f"No account of {self._home} has this secret.", hint="Leave --token (HYBRID_TOKEN) out.")
        if account.right < right:
            raise RightError(
                f"Account '{account.name}' has the right {account.right.word}; {what} takes {right.word}.",
                hint=f"hybrid access add NAME --right {right.word}",
            )

    def _alone(self) -> AbstractContextManager[None]:
        """Lock that keeps other processes from changing the file."""
        durable.make_private(self._home)
        return file_lock(self._home)

    def _write(self, accounts: Sequence[Account]) -> None:
        rows = [
            {
                "name": account.name,
                "right": account.right.word,
                "sha256": account.digest,
                "created_at": account.created_at,
            }
            for account in accounts
        ]
        part = self.path.with_suffix(".part")
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(json.dumps({"accounts": rows}, indent=2) + "\n")
        durable.sync(part)
        durable.rename(part, self.path)


def reads_only() -> bool:
    """Whether the current work is for an account that may only read."""
    return ASKING_RIGHT.get() is Right.READ


def new_secret() -> str:
    """A secret of 256 random bits, in characters that need no quoting."""
    return secrets.token_hex(_SECRET_BYTES)


def digest_of(secret: str) -> str:
    """The stored digest of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
