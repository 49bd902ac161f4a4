"""A small cache of values that are expensive to make, by what they were made from."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class KeptValues(Generic[Value]):
    """Keeps the last used values. Thread-safe; callers of one value share its making."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}
        self._lock = threading.Lock()

    def get(self, identity: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of an identity, made now if it is not there."""
        with self._lock:
            if identity in self._values:
                return self._touched_value(identity)
            making_lock = self._making.setdefault(identity, threading.Lock())
        with making_lock:
            with self._lock:
                if identity in self._values:  # another caller has made it meanwhile
                    return self._touched_value(identity)
            try:
                value = make()
                self._keep(identity, value)
            finally:
                with self._lock:
                    self._making.pop(identity, None)
            return value

    def _touched_value(self, identity: Hashable) -> Value:
        self._values.move_to_end(identity)
        return self._values[identity]

    def _keep(self, identity: Hashable, value: Value) -> None:
        with self._lock:
            self._values[identity] = value
            while len(self._values) > self._count:
                self._values.popitem(last=False)
