"""The niceness of a session's JVM, where the system counts it by session and where it does not."""

import builtins
from pathlib import Path
from typing import Any

import pytest

from hybrid.lake import spark


def test_a_niceness_that_another_change_of_the_machine_holds_up_is_set_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []

    def busy_twice(path: str, *rest: Any, **more: Any) -> Any:
        tries.append(path)
        if len(tries) < 3:
            raise BlockingIOError("EAGAIN")
        return builtins.open(path, *rest, **more)

    (tmp_path / "7").mkdir()
    monkeypatch.setattr(spark, "open", busy_twice, raising=False)
    spark._set_autogroup(7, 10, f"{tmp_path}/{{}}/autogroup", pause_s=0.0)
    assert (tmp_path / "7" / "autogroup").read_text() == "10" and len(tries) == 3


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError, ProcessLookupError])
def test_a_system_that_refuses_is_left_as_it_is(error: type[OSError], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise error

    monkeypatch.setattr(spark, "open", refuse, raising=False)
    spark._set_autogroup(7, 10)
