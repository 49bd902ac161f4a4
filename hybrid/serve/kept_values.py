"""A small cache of values that are expensive to make, by what they were made from."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class KeptValues(Generic[Value]):
    """Keeps the last used values. Thread-safe; a value is made by one caller, others wait for it."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._one_makes = threading.Lock()

    def get(self, identity: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of an identity, made now if it is not there."""
        with self._one_makes:
            if identity not in self._values:
                self._values[identity] = make()
                while len(self._values) > self._count:
                    self._values.popitem(last=False)
            self._values.move_to_end(identity)
            return self._values[identity]
