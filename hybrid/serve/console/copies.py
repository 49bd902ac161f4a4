"""Commands that reproduce what a page does: for the command line, curl and Python, from one verb with its arguments."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from hybrid.serve.authentication import who_asks

Copies = list[dict[str, str]]
_TOKEN = '-H "Authorization: Bearer $HYBRID_TOKEN"'


def command_line(words: Sequence[str], label: str = "Command line") -> dict[str, str]:
    """One way alone: a command, by its words after `hybrid`."""
    return {"label": label, "text": shlex.join(["hybrid", *words])}


def copies_of(url: str, verb: str, arguments: Mapping[str, Any], *, cli: Sequence[str], python: str) -> Copies:
    """The three ways to call a verb. `cli` are the words after `hybrid`; `python` is the call on `hy`.

    `url` is any address on the server; only its scheme, host and port are used.
    """
    parts = urlsplit(url)
    server = f"{parts.scheme}://{parts.netloc}"
    body = json.dumps({name: value for name, value in arguments.items() if value is not None}, ensure_ascii=False)
    curl = ["curl", "-sS", "-H", "Content-Type: application/json", "-d", body, f"{server}/verbs/{verb}"]
    text = shlex.join(curl)
    if who_asks() is not None:
        text = text.replace("curl -sS", f"curl -sS {_TOKEN}", 1)
    return [
        command_line(cli),
        {"label": "curl", "text": text},
        {"label": "Python", "text": f"import hybrid\nhy = hybrid.connect({server!r})\n{python}"},
    ]
