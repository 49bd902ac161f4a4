"""A file that is complete or absent: it is written beside its place, and renamed when it is complete."""

from __future__ import annotations

import errno
import os
import stat
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from hybrid.errors import ConflictError, HybridError, MachineError, NotFoundError, UsageError
from hybrid.runtime import durable

_BUFFER = 1024 * 1024
_FULL = (errno.ENOSPC, errno.EDQUOT)
_HINT = "hybrid query -o FILE --force replaces it (Python: force=True)."


class OutputStream:
    """Bytes that go to an open stream, such as standard output or a pipe, and cannot be taken back."""

    can_restart = False

    _closes = False

    def __init__(self, stream: BinaryIO, name: str, *, closes: bool = False) -> None:
        self._stream, self.name, self._closes = stream, name, closes
        self.bytes = 0

    def write(self, data: bytes | memoryview) -> int:
        """Takes bytes."""
        with _named(self.name):
            self._stream.write(data)
        self.bytes += len(data)
        return len(data)

    def flush(self) -> None:
        """Passes on what was gathered."""
        with _named(self.name):
            self._stream.flush()

    def restart(self) -> None:
        """Takes back what was written. Here it cannot."""
        raise ConflictError(f"{self.name}: the files of a table changed after rows were sent. Run it again.")

    def complete(self) -> None:
        """The result is whole."""
        self.flush()
        self._close()

    def discard(self) -> None:
        """The result is not whole: what was sent stays."""
        self._close()

    def _close(self) -> None:
        if self._closes:
            with suppress(OSError):  # what is buffered may not fit onto a full disk
                self._stream.close()


class OutputFile(OutputStream):
    """A file at `path`, which has the rows only after `complete`. Until then they are in a hidden file beside it."""

    can_restart = True

    def __init__(self, path: Path, *, force: bool) -> None:
        self._path, self._force = Path(os.path.realpath(path)), force
        name = str(path)
        _check(self._path, name, force)
        self._part = self._path.with_name(f".{self._path.name}.{uuid.uuid4().hex[:12]}.part")
        with _named(name):
            file = open(self._part, "xb", buffering=_BUFFER)  # noqa: SIM115
        super().__init__(file, name)

    def restart(self) -> None:
        """Takes back what was written."""
        with _named(self.name):
            self._stream.seek(0)
            self._stream.truncate()
        self.bytes = 0

    def complete(self) -> None:
        """Gives the file its name. ConflictError if another file has it by now."""
        with _named(self.name):
            self._stream.close()
            durable.sync(self._part)
            if self._force:
                durable.rename(self._part, self._path)
            else:
                self._name_if_free()

    def discard(self) -> None:
        """Removes what was written."""
        with suppress(OSError):  # what is buffered may not fit onto a full disk
            self._stream.close()
        self._part.unlink(missing_ok=True)

    def _name_if_free(self) -> None:
        try:
            durable.rename_new(self._part, self._path)
        except FileExistsError:
            raise _exists(self.name) from None


def open_output(path: Path, *, force: bool) -> OutputStream:
    """The output for a path: a file, or the device or pipe that is there. Refuses a file that exists, without `force`.

    NotFoundError for a missing folder, UsageError for a folder, ConflictError for an existing file.
    """
    with _named(str(path)):
        status = path.stat() if path.exists() else None
        if status is None or stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
            return OutputFile(path, force=force)
        return OutputStream(open(path, "wb", buffering=_BUFFER), str(path), closes=True)


def _check(path: Path, name: str, force: bool) -> None:
    if path.is_dir():
        raise UsageError(f"{name} is a folder: name a file.")
    if not path.parent.is_dir():
        raise NotFoundError(f"{name}: folder '{path.parent}' does not exist.")
    if path.exists() and not force:
        raise _exists(name)


def _exists(name: str) -> ConflictError:
    return ConflictError(f"{name} exists already. Nothing was written.", hint=_HINT)


@contextmanager
def _named(name: str) -> Iterator[None]:
    """Maps errors of the operating system to errors that name the file."""
    try:
        yield
    except BrokenPipeError:  # the reader of the pipe has what it wanted
        raise
    except OSError as error:
        raise _os_error(name, error) from error


def _os_error(name: str, error: OSError) -> HybridError:
    reason = error.strerror or str(error)
    if error.errno in _FULL:
        return MachineError(
            f"{name}: {reason}. No file was left.", hint="Make room, write to another disk, or narrow the statement."
        )
    return MachineError(f"{name} cannot be written: {reason}.", hint=f"ls -ld {Path(name).absolute().parent}")
