"""The page of accounts: who may use this server. Accounts are made on its machine, so it shows the commands.

No verb makes an account (ADR 57): whoever takes over a session or a secret must not make itself a second one.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from fastapi import APIRouter

from hybrid.errors import RightError
from hybrid.home.accounts import ASKING_RIGHT, Accounts, Right
from hybrid.serve.console.page import Json, PageRequest, page

router = APIRouter(include_in_schema=False)


@page(router, "/ui/accounts", template="accounts.html", title="Accounts")
def accounts_page(ask: PageRequest) -> Json:
    """The accounts of the home, oldest first, for administrators. No part of a secret is in the answer."""
    right = ASKING_RIGHT.get()
    if right is not None and right < Right.ADMIN:
        raise RightError(f"The list of accounts takes the right {Right.ADMIN.word}.")
    home = ask.context.home.home
    return {
        "accounts": [
            {
                "name": account.name,
                "right": account.right.word,
                "created_at": account.created_at,
                "remove": _command(home, "remove", account.name),
            }
            for account in Accounts(home).list()
        ],
        "remove": _command(home, "remove", "NAME"),
        "add": {one.word: _command(home, "add", "NAME", "--right", one.word) for one in Right},
    }


def _command(home: Path, *words: str) -> str:
    return shlex.join(["hybrid", "access", *words, "--home", str(home)])
