"""The probe finds real servers fit, and each weaker one unfit; `hybrid doctor --store` says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hybrid.cli.main import run
from hybrid.errors import StoreError
from hybrid.store.object_versions import ObjectVersions
from hybrid.store.store_backend import StoreTuning
from hybrid.store.store_client import open_store
from hybrid.store.store_probe import ProbeTuning, StoreCheck, Verdict, is_fit, probe_store
from tests.google_server import GoogleServer
from tests.s3_server import needs_s3, s3_server
from tests.store.store_proxy import (
    CONDITIONS,
    CREATING,
    Answer,
    Request,
    Send,
    StoreProxy,
    Treatment,
    check_then_write,
    drop_conditions,
    refuse,
    shift_clock,
)
from tests.store_servers import ONLY_AZURE, ONLY_GOOGLE, StoreServer

pytestmark = [pytest.mark.process]

TUNING = StoreTuning(connect_s=2.0, request_s=10.0, patience_s=1.0)


# A real store is asked in full by the command's test; requests by the proxy take a multiple of their time.
QUICK = ProbeTuning(writers=6, races=1, rounds=2, timed=1)
RACE = replace(QUICK, writers=32)
IS_ON = "versioning is on: what vacuum deletes stays as an older version, and is paid for"
LIFECYCLE, RIGHTS = "Let a lifecycle rule remove noncurrent versions", "Permit s3:GetBucketObjectLockConfiguration."


@pytest.fixture
def url(server: StoreServer) -> str:
    return f"{server.kind}://bucket/probed"


def probe(url: str, tuning: ProbeTuning = QUICK) -> dict[str, StoreCheck]:
    return {check.check: check for check in probe_store(open_store(url, TUNING), tuning)}


def unfit(checks: dict[str, StoreCheck]) -> set[str]:
    assert not is_fit(list(checks.values()))
    return {name for name, check in checks.items() if check.verdict is Verdict.UNFIT}


def noted_versions(checks: dict[str, StoreCheck], hint: str = LIFECYCLE) -> str:
    """What the check `versions` has seen of a store that is fit: a note with this hint."""
    assert is_fit(list(checks.values())), checks
    check = checks["versions"]
    assert check.verdict is Verdict.NOTE and check.hint is not None and hint in check.hint
    return check.seen


def test_a_real_store_is_fit(proxy: StoreProxy, url: str) -> None:
    checks = probe(url)
    assert {check.verdict for check in checks.values()} == {Verdict.FIT, Verdict.NOTE}, checks
    assert is_fit(list(checks.values()))
    assert list(checks) == [
        "clock", "access", "create", "replace", "read", "list", "delete", "versions", "multipart", "latency", "cleanup",
    ]  # fmt: skip
    assert open_store(url).list_below() == []


@pytest.mark.parametrize(("ignored", "found"), [("create", {"create"}), ("replace", {"replace"})])
def test_a_store_that_ignores_conditions_is_unfit(proxy: StoreProxy, url: str, ignored: str, found: set[str]) -> None:
    proxy.always = ignore_conditions(is_creating=ignored == "create")
    checks = probe(url, RACE)
    assert unfit(checks) == found
    for name in found:
        assert "of 32 writers at once with" in checks[name].seen and checks[name].hint
    assert open_store(url).list_below() == []


def ignore_conditions(*, is_creating: bool) -> Treatment:
    """As a store does that knows one of the two kinds of conditions only."""

    def ignored(request: Request, send: Send) -> Answer | None:
        names = {name for name in CONDITIONS if (request.headers.get(name) == CREATING.get(name, "")) == is_creating}
        return drop_conditions(*names)(request, send)

    return ignored


def test_a_store_that_lets_several_writers_win_is_unfit(proxy: StoreProxy, url: str) -> None:
    proxy.always = check_then_write(0.05)
    checks = probe(url, RACE)
    assert unfit(checks) == {"create"} and "won, not one" in checks["create"].seen


def test_a_store_that_refuses_conditions_is_unfit(proxy: StoreProxy, url: str) -> None:
    def refused(request: Any, send: Any) -> Answer | None:
        is_conditional = CONDITIONS & request.headers.keys()
        return refuse(501, "NotImplemented")(request, send) if is_conditional else send(request)

    proxy.always = refused
    checks = probe(url)
    assert {"create", "replace"} <= unfit(checks)
    assert "does not carry out conditional writes" in checks["create"].seen


def test_a_stale_store_is_unfit(proxy: StoreProxy, url: str) -> None:
    """A cache that answers reads from what it has seen, and a list that skips the newest name."""
    cached: dict[str, Answer] = {}

    def from_cache(request: Any, send: Any) -> Answer | None:
        if request.method != "GET":
            return send(request)
        answer = cached.setdefault(request.target, send(request))
        return answer

    proxy.always = from_cache
    checks = probe(url)
    assert {"read", "list", "delete", "cleanup"} <= unfit(checks)
    assert "objects are left below" in checks["cleanup"].seen
    proxy.always = lambda request, send: send(request)
    client = open_store(url)
    for found in client.list_below():
        client.delete(found.key)


def test_damaged_parts_are_unfit(proxy: StoreProxy, url: str) -> None:
    def damaged(request: Any, send: Any) -> Answer | None:
        answer = send(request)
        if request.method == "GET" and len(answer.body) > 1 << 20:
            return Answer(answer.status, answer.headers, b"\0" * len(answer.body))
        return answer

    proxy.always = damaged
    assert unfit(probe(url)) == {"multipart"}


def test_a_wrong_clock_is_unfit(proxy: StoreProxy, url: str) -> None:
    proxy.always = shift_clock(40)
    checks = probe(url)
    assert unfit(checks) == {"clock"} and "ahead of the store's" in checks["clock"].seen


@needs_s3
def test_a_bucket_that_keeps_versions_is_fit_and_noted(tmp_path: Path, environment: pytest.MonkeyPatch) -> None:
    """Warehouses work there, and so do purges: tests/operations/test_warehouse_purges.py."""
    versions = tmp_path / "versions"
    versions.mkdir()
    with s3_server(tmp_path / "s3", versions) as server:
        for name, value in server.environment.items():
            environment.setenv(name, value)
        server.create_bucket("kept")
        server.keep_versions("kept")
        seen = noted_versions(probe("s3://kept"))
        assert seen == f"{IS_ON}. A purge removes those of its table, and needs s3:DeleteObjectVersion"
        with environment.context() as patch:
            patch.setattr(ObjectVersions, "retention", refused)
            assert noted_versions(probe("s3://kept"), RIGHTS) == f"{IS_ON}. A purge is refused: not permitted"
            patch.setattr(ObjectVersions, "versioning", refused)
            assert noted_versions(probe("s3://kept"), RIGHTS).startswith(IS_ON), "as its answers show"
        server.keep_versions("kept", "Suspended")
        assert noted_versions(probe("s3://kept")).startswith("versioning is suspended: ")
        server.create_locked_bucket("locked", 30)
        seen = noted_versions(probe("s3://locked"))
        assert seen == f"{IS_ON}. Object lock keeps each object for 30 days: a purge is refused"


def refused(versions: ObjectVersions) -> str:
    raise StoreError("not permitted", hint=RIGHTS)


@ONLY_AZURE
def test_a_container_that_keeps_versions_is_fit_and_noted(proxy: StoreProxy, url: str) -> None:
    """Azurite keeps none: the proxy adds what Azure answers then."""

    def versioned(request: Request, send: Send) -> Answer | None:
        answer = send(request)
        headers = {**answer.headers, "x-ms-version-id": "2026-11-28T00:00:00.0000000Z"}
        return replace(answer, headers=headers) if request.method == "PUT" else answer

    proxy.always = versioned
    assert noted_versions(probe(url)) == IS_ON


@ONLY_GOOGLE
def test_a_bucket_of_google_that_keeps_versions_is_fit_and_noted(proxy: StoreProxy, server: GoogleServer) -> None:
    server.create_bucket("kept", keeps_versions=True)
    assert noted_versions(probe("gs://kept")).startswith("versioning is on, since an object that was replaced ")


def test_a_store_without_access(proxy: StoreProxy, server: StoreServer) -> None:
    checks = probe(f"{server.kind}://nowhere")
    assert unfit(checks) == {"access"} and checks["clock"].verdict is Verdict.FIT
    assert {check.verdict for name, check in checks.items() if name not in {"access", "clock"}} == {Verdict.UNCHECKED}
    assert "cleanup" not in checks


SECRETS = {"s3": "AWS_SECRET_ACCESS_KEY", "az": "AZURE_STORAGE_ACCOUNT_KEY", "gs": "GOOGLE_BEARER_TOKEN"}
WRONG = {"s3": "another-secret-of-tests", "az": "YW5vdGhlci1zZWNyZXQtb2YtdGVzdHM=", "gs": "another-secret-of-tests"}


def test_the_command(
    server: StoreServer, environment: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, value in server.environment.items():
        environment.setenv(name, value)
    url = f"{server.kind}://bucket/command"
    words = ["doctor", "--store", url, "--home", str(tmp_path / "none")]
    assert run([*words, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [list(check) for check in printed] == [["check", "verdict", "seen", "hint"]] * 11
    secret = SECRETS[server.kind]
    environment.setenv(secret, WRONG[server.kind])
    assert run(words) == 3
    shown = capsys.readouterr()
    assert f"not fit: access: {url}: cannot write" in shown.out and "does not accept the keys" in shown.out
    assert f" {secret.partition('_')[0]}_" in shown.out.partition("    hint: ")[2]
    assert shown.err.endswith(f"{url} is not fit to hold a warehouse.\n")
    assert "secret-of-tests" not in shown.out + shown.err and WRONG[server.kind] not in shown.out + shown.err
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["orders", "--store", "s3://bucket"], 2),
        (["--repair", "--store", "s3://bucket"], 2),
        (["--store", "s3://bucket", "--server", "http://127.0.0.1:1"], 2),
        (["--store", "ftp://bucket"], 1),
    ],
)
def test_commands_that_cannot_be(words: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["doctor", *words]) == code
    assert "error: " in capsys.readouterr().err
