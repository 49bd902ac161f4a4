"""An operation that ends at a failpoint as if its process were killed, and costs no process and no JVM."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from hybrid.lake import failpoints


class Death(BaseException):
    """What a killed process leaves: nothing after it runs."""


@contextmanager
def ends_at(point: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The block ends at the failpoint `point`, as it must."""

    def die() -> None:
        raise Death

    with monkeypatch.context() as patch:
        patch.setenv("HYBRID_FAILPOINT", point)
        patch.setattr(failpoints, "_die", die)
        patch.setattr(failpoints, "_passed", {})
        with pytest.raises(Death):
            yield
