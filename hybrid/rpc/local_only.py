"""What a connection to a server does not do: it raises UsageError that says what would."""

from __future__ import annotations

from typing import Any, NoReturn

from hybrid.errors import UsageError


class LocalOnly:
    """A method or property that needs a home of this machine. `instead` says what to do through a server."""

    def __init__(self, instead: str) -> None:
        self._instead, self._name = instead, ""

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type[Any]) -> Any:
        if instance is None:
            return self
        refuse_remote(f"'{self._name}'", self._instead)


def refuse_remote(what: str, instead: str) -> NoReturn:
    """UsageError: `what` works on a home only."""
    raise UsageError(f"{what} works on a home of this machine, not through a server.", hint=instead)


class RemoteObject:
    """Base of the remote classes. A method that they do not override needs the home, and is refused."""

    def __getattr__(self, name: str) -> Any:
        if name in {"context", "_home", "_ref", "_table", "_spec", "_queries", "_waits", "_known"}:
            refuse_remote("This method", "Call it on the server's machine: hybrid.connect('HOME').")
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not isinstance(getattr(type(self), name, None), LocalOnly)]
