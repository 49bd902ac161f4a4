"""Secrets by reference: `${env:NAME}` and `${file:/path}` in a document, resolved each time the secret is used.

Definitions, run records, answers and differences hold the reference as it was written. Only the process that connects
reads the value, when it connects.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NoReturn

from hybrid.errors import HybridError, StreamError
from hybrid.schema.document import Section
from hybrid.schema.secrets import HIDDEN, hides, without_secrets

_REFERENCE = re.compile(r"\$\{(env|file):([^{}]*)\}")
_LOOKS_LIKE_ONE = re.compile(r"\$\{\s*(?:env|file)\s*:", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_FILE_MAX = 65_536
# Longer texts that hold no secret beside a reference, by the ends of their keys.
_ONE = r"\$\{(?:env|file):[^{}\"\\]*\}"
_PUBLIC_FORMS = {
    "sasl.jaas.config": re.compile(
        rf'\s*[\w.]+\s+required(?:\s+(?:username\s*=\s*"[^"\\]*"|password\s*=\s*"{_ONE}"))*\s*;?\s*'
    ),
    "basic.auth.user.info": re.compile(rf"[^:]*:{_ONE}"),
}
_EXAMPLES = "Write ${env:NAME} or ${file:/absolute/path}."


def has_reference(text: str) -> bool:
    """Whether a text contains a reference, even a malformed one."""
    return _LOOKS_LIKE_ONE.search(text) is not None


def without_plain_secrets(document: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """A copy of a document with its secrets hidden but for references, and the places of what is hidden."""
    hidden: list[str] = []
    shown = _with_references(document, without_secrets(document), "", hidden)
    assert isinstance(shown, dict)
    return shown, hidden


def _with_references(original: object, shown: object, place: str, hidden: list[str]) -> object:
    """`shown` with the references of `original` in it; the places of what stays hidden are added to `hidden`."""
    if isinstance(original, dict) and isinstance(shown, dict):
        below = f"{place}." if place else ""
        return {key: _with_references(original[key], shown[key], f"{below}{key}", hidden) for key in original}
    if isinstance(original, list) and isinstance(shown, list):
        pairs = enumerate(zip(original, shown, strict=True))
        return [_with_references(old, new, f"{place}[{at}]", hidden) for at, (old, new) in pairs]
    if shown == original or (shown == HIDDEN and isinstance(original, str) and _is_reference(place, original)):
        return original
    hidden.append(place)
    return shown


def _is_reference(key: str, text: str) -> bool:
    """Whether a secret is a reference alone, so that showing it tells no part of the secret."""
    forms = (form for end, form in _PUBLIC_FORMS.items() if key.endswith(end) and has_reference(text))
    return _REFERENCE.fullmatch(text) is not None or any(form.fullmatch(text) for form in forms)


def refuse_reference(section: Section, key: str) -> NoReturn:
    """SpecError for a reference at a key that is no secret."""
    section.fail(key, "holds a reference, which only a secret may be: this key is shown to everybody.")


def check_references(section: Section, key: str, text: str) -> None:
    """SpecError for a malformed reference, or a reference at a key that is no secret. Nothing is resolved."""
    if not has_reference(text):
        return
    if not hides(key, in_options=True):
        refuse_reference(section, key)
    references = _REFERENCE.findall(text)
    if len(references) != len(_LOOKS_LIKE_ONE.findall(text)):
        section.fail(key, "holds a reference that cannot be read.", hint=_EXAMPLES)
    for kind, name in references:
        if kind == "env" and not _NAME.fullmatch(name):
            section.fail(key, f"'{name[:100]}' is no name of an environment variable.", hint=_EXAMPLES)
        if kind == "file" and (not name.startswith("/") or "\0" in name):
            section.fail(key, f"'{name[:100]}' is no absolute path.", hint=_EXAMPLES)


def resolve(text: str, place: str, error: type[HybridError] = StreamError) -> str:
    """The text with its references replaced by their values; values are not resolved again. `place` names the secret.

    Raises `error` for a missing value. It names the place and the variable or file, and never contains a value.
    """
    return _REFERENCE.sub(lambda match: _value(match[1], match[2], place, error), text)


def _value(kind: str, name: str, place: str, error: type[HybridError]) -> str:
    if kind == "file":
        return _file(Path(name), place, error)
    value = os.environ.get(name)
    if not value:
        raise error(
            f"{place} is ${{env:{name}}}, and this process has no environment variable '{name}'.",
            hint="Set it where the server and the command line are started, and start them again.",
        )
    return value


def _file(path: Path, place: str, error: type[HybridError]) -> str:
    """The text of a file, without the final line end that editors add."""
    reason = "it is no file"
    try:
        if path.is_file():
            with path.open("rb") as file:
                data = file.read(_FILE_MAX + 1)
            text = data.decode("utf-8").rstrip("\r\n")
            if text and len(data) <= _FILE_MAX:
                return text
            reason = f"it holds more than {_FILE_MAX} bytes" if text else "it is empty"
        elif not path.exists():
            reason = "it does not exist"
    except OSError as failure:
        reason = failure.strerror or type(failure).__name__
    except ValueError:
        reason = "it is not UTF-8"
    raise error(
        f"{place} is ${{file:{path}}}, which cannot be read: {reason}.",
        hint="Put the secret into that file, readable by the server's user.",
    )
