"""Verbs that take dataclasses are called, described and checked by the fields."""

from __future__ import annotations

import inspect
from dataclasses import fields
from types import SimpleNamespace
from typing import Any

import pytest

from hybrid.errors import UsageError
from hybrid.operations.backfill_change import BackfillChange
from hybrid.replace.job_options import JobOptions
from hybrid.rpc.flat_arguments import flat, from_flat
from hybrid.rpc.job_request import JobRequest
from hybrid.rpc.verbs import VERBS
from hybrid.serve.verbs import _checked, _with_defaults

JOB = {"spec": "x", "source": "job.yml", "folder": "/", "variables": {}}


@flat(options=JobOptions)
def verb(home: Any, *, table: str, options: JobOptions) -> Any:
    return home, table, options


def test_a_verb_gets_its_dataclass() -> None:
    assert verb("home", table="t", append=True) == ("home", "t", JobOptions(append=True))
    with pytest.raises(TypeError, match="nothing_of_it"):
        verb("home", table="t", nothing_of_it=1)


def test_a_signature_names_every_field() -> None:
    names = list(inspect.signature(VERBS["job_run"].call).parameters)
    assert names == ["home", *(field.name for kind in (JobRequest, JobOptions) for field in fields(kind))]
    names = list(inspect.signature(VERBS["backfill_plan"].call).parameters)
    assert names == ["home", "table", *(field.name for field in fields(BackfillChange))]


def test_a_server_checks_the_fields() -> None:
    call = VERBS["job_run"].call
    assert _checked(call, {**JOB, "append": True}) == {**JOB, "append": True}
    complete = _with_defaults(call, JOB)
    assert complete["append"] is False and complete["sql"] is None and complete["expect"] == ()
    for wrong, said in (
        ({**JOB, "append": "yes"}, "append: Input should be a valid boolean"),
        ({**JOB, "options": {}}, "options: Extra inputs are not permitted"),
        ({name: value for name, value in JOB.items() if name != "spec"}, "spec: Field required"),
    ):
        with pytest.raises(UsageError, match=said):
            _checked(call, wrong)


def test_a_request_is_found_among_the_arguments() -> None:
    request = from_flat(JobRequest, {**JOB, "sql": "select 1", "append": True, "user": None})
    assert request == JobRequest(**JOB, sql="select 1")
    with pytest.raises(UsageError, match="--sql and --input both"):
        from_flat(JobRequest, {**JOB, "spec": "{}", "sql": "select 1", "input_dir": "/in"}).parse(0)


def test_a_change_reaches_the_operation() -> None:
    asked: list[Any] = []
    home = SimpleNamespace(backfills=SimpleNamespace(plan=lambda table, change: asked.append((table, change))))
    with pytest.raises(AttributeError):  # the stub makes no plan
        VERBS["backfill_plan"].call(home, table="t", delete=True, where="a = 1", expect=["b > 0"])
    assert asked == [("t", BackfillChange(delete=True, where="a = 1", expect=["b > 0"]))]
