"""Whether a text that a person typed may hold a secret: it is kept in no history and in no log."""

from __future__ import annotations

import re
from collections.abc import Iterable

from hybrid.schema.secrets import has_short_name, hides, without_login

_WORD = re.compile(r"[\w.\-]+")
_PAIR = re.compile(r"([\w.\-]+)[\"']?\s*(?:[=<>!:]+|(?i:(?:not\s+)?(?:in|like|between)\b))\s*\S")
_SET = re.compile(r"(?:^|\s)[.\\]set\s+([\w.\-]+)\s+\S")  # a command of the shell, which writes no `=`
_SIGNED = re.compile(r"[?&][\w.\-]*(?:sig|token|credential|key)[\w.\-]*=", re.IGNORECASE)
_BEARER = re.compile(r"\b(?:bearer|basic)\s+[\w+/=.~-]{8,}", re.IGNORECASE)
_SECRET_LENGTH_MIN = 4


def holds_secret(text: str, secrets: Iterable[str] = ()) -> bool:
    """Whether a text may hold a secret: one of `secrets`, a login or signature in an address, a value by its name.

    With a text in quotes any name that looks secret counts, whatever stands between the two.
    """
    if any(len(secret) >= _SECRET_LENGTH_MIN and secret in text for secret in secrets):
        return True
    if _BEARER.search(text) or _SIGNED.search(text) or _has_login(text):
        return True
    names = [*(_WORD if "'" in text else _PAIR).findall(text), *_SET.findall(text)]
    return any(hides(name) or has_short_name(name) for name in names)


def _has_login(text: str) -> bool:
    addresses = (word.partition("?")[0] for word in text.split() if "://" in word)
    return any(without_login(address) != address for address in addresses)
