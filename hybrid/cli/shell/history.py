"""The history of statements: a file of the user alone, in which no secret is written."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from prompt_toolkit.history import FileHistory

from hybrid.runtime import durable
from hybrid.schema.secret_texts import holds_secret

_NAME = "shell_history"
_BYTES_MAX = 1024 * 1024
_MODE = 0o600
_ENTRY = b"\n# "  # each entry begins with its time


def history_file(environment: Mapping[str, str] = os.environ) -> Path:
    """The file in the user's state folder."""
    state = environment.get("XDG_STATE_HOME", "")
    folder = Path(state) if os.path.isabs(state) else Path.home() / ".local" / "state"
    return folder / "hybrid" / _NAME


class PrivateHistory(FileHistory):
    """A history file with mode 0600. Texts that begin with a space, or hold a secret, are kept in memory only."""

    def __init__(self, path: Path, secrets: Sequence[str], say: Callable[[str], None]) -> None:
        super().__init__(str(path))
        self._path, self._secrets, self._say = path, secrets, say
        self._has_failed = False
        try:
            self._prepare()
        except OSError as error:
            self._fail(error)

    def load_history_strings(self) -> Iterable[str]:
        """The texts of the file, newest first; none from a file that cannot be read."""
        try:
            return list(super().load_history_strings())
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Append a text to the file."""
        if self._has_failed or string[:1].isspace() or holds_secret(string, self._secrets):
            return
        try:
            super().store_string(string)
        except OSError as error:
            self._fail(error)

    def _prepare(self) -> None:
        """Create the file, or take its rights from others, and cut off its oldest entries."""
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self._path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, _MODE))
        os.chmod(self._path, _MODE)
        if self._path.stat().st_size > _BYTES_MAX:
            content = self._path.read_bytes()
            start = content.find(_ENTRY, len(content) - _BYTES_MAX // 2)
            with suppress(UnicodeDecodeError):
                durable.write_text(self._path, content[max(0, start) :].decode())
            os.chmod(self._path, _MODE)

    def _fail(self, error: OSError) -> None:
        if not self._has_failed:
            self._say(f"warning: The history cannot be kept in {self._path}: {error.strerror}.")
        self._has_failed = True
