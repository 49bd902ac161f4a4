"""What work that is sent to a server may read: paths by where they lead, buckets by who reads them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hybrid.config.input_files import files_below
from hybrid.config.input_rules import InputRules, StoreRules
from hybrid.config.job_store import ObjectStore
from hybrid.config.settings import load_settings
from hybrid.errors import RightError
from hybrid.home.accounts import Accounts, Right
from hybrid.home.input_access import rules_of


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A home with a secret, an allowed folder, and another one."""
    for name in ("home/uploads/1", "home/warehouse/t", "data/in", "other", "database"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("home/server.json", "home/uploads/1/a.json", "home/warehouse/t/x", "data/in/a.json", "other/b.json"):
        (tmp_path / name).write_text("{}")
    return tmp_path


def allowed(rules: InputRules, path: Path | str) -> bool:
    return rules.refusal(Path(path)) is None


def test_the_home_and_the_kernel_are_closed_in_every_spelling(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rules = InputRules(place / "home")
    monkeypatch.chdir(place / "data")
    (place / "data/link").symlink_to(place / "home")
    (place / "data/deep").symlink_to("link/warehouse/../server.json")
    os.link(place / "home/server.json", place / "data/hard.json")
    closed = [
        place / "home", place / "home/server.json", place / "home/new", place / "data/../home/warehouse/t/x",
        "../home/server.json", "link/server.json", "deep", "hard.json", f"//{place}/home/server.json",
        "/proc", "/proc/self/environ", "//proc/self/environ", "///proc/self/environ", "/proc/../proc/self/environ",
        "/proc/self/root/proc/self/environ", "/dev/null", "/dev/fd/0", "/sys/kernel", "/tmp/../dev/zero",
    ]  # fmt: skip
    assert [path for path in closed if allowed(rules, path)] == []
    assert allowed(rules, place / "data/in/a.json") and allowed(rules, "in/a.json") and allowed(rules, place / "none")


def test_a_symbolic_home_is_the_home(place: Path) -> None:
    (place / "alias").symlink_to(place / "home")
    rules = InputRules(place / "alias")
    assert not allowed(rules, place / "home/server.json") and not allowed(rules, place / "alias/server.json")


def test_allowed_folders_hold_against_siblings_and_links(place: Path) -> None:
    rules = InputRules(place / "home", (place / "data",))
    (place / "data/out").symlink_to(place / "other")
    (place / "data/loop").symlink_to("loop")
    assert allowed(rules, place / "data") and allowed(rules, place / "data/in/a.json")
    for path in ("other", "other/b.json", "database", "data/out/b.json", "data/../other/b.json", "", "/etc/passwd"):
        assert not allowed(rules, place / path), path
    assert not allowed(InputRules(place / "home", ()), place / "data")


def test_a_listed_file_that_leads_elsewhere_is_refused_and_private_folders_are_not_entered(place: Path) -> None:
    rules = InputRules(place / "home")
    assert [path.name for path in files_below(place, rules)] == ["a.json", "b.json"]
    (place / "data/in/z.json").symlink_to(place / "home/server.json")
    with pytest.raises(RightError, match="server or to the system"):
        rules.check(files_below(place / "data", rules)[-1])


def test_an_upload_reads_the_uploaded_file_alone(place: Path) -> None:
    rules = InputRules(place / "home", is_upload=True)
    assert allowed(rules, place / "home/uploads/1/a.json")
    (place / "home/uploads/1/b.json").symlink_to("../../server.json")
    for path in ("home/uploads/1/b.json", "home/server.json", "data/in/a.json", "home/uploads/../server.json"):
        assert not allowed(rules, place / path), path


@pytest.mark.parametrize(
    ("options", "works"),
    [
        ({}, False),
        ({"accessKey": "a"}, False),
        ({"accessKey": "", "secretKey": ""}, False),
        ({"accessKey": "a", "secretKey": "b"}, True),
        ({"anonymousCredentialsProvider": "true"}, True),
        ({"anonymousCredentialsProvider": "TRUE", "endpoint": "http://169.254.169.254"}, False),
        ({"accessKey": "a", "secretKey": "b", "endpoint": "http://127.0.0.1:9000"}, False),
        ({"accessKey": "a", "secretKey": "b", "endpoint": "https://S3.example.org/"}, True),
        ({"accessKey": "a", "secretKey": "b", "endpoint": "https://user@s3.example.org"}, False),
        ({"accessKey": "a", "secretKey": "b", "region": "x.evil.org/#"}, False),
    ],
)
def test_stores_need_keys_of_their_own_and_listed_endpoints(place: Path, options: dict[str, str], works: bool) -> None:
    rules = InputRules(place / "home", stores=StoreRules(frozenset({"open"}), frozenset({"s3.example.org"})))
    store = ObjectStore("closed", "key", options)
    if works:
        rules.check_store(store)
    else:
        with pytest.raises(RightError, match="s3://closed/key"):
            rules.check_store(store)
    rules.check_store(ObjectStore("open", "key"))
    InputRules(place / "home").check_store(store)


def test_rules_follow_the_source_of_a_run(place: Path) -> None:
    home = place / "home"
    for name, right in (("op", Right.OPERATE), ("root", Right.ADMIN)):
        Accounts(home).add(name, right)
    settings = load_settings(home=home, environ={})
    assert rules_of(settings, "http:op").folders == () and rules_of(settings, "cli:gone").folders == ()
    assert rules_of(settings, "http:root").folders is None and rules_of(settings, "cli").folders is None
    assert rules_of(settings, "upload:op").is_upload and not rules_of(settings, "http:upload").is_upload
    environ = {
        "HYBRID_INPUT_FOLDERS": f"{place}/data{os.pathsep}{place}/other",
        "HYBRID_S3_ENDPOINTS": "http://S3.Local:9/ , x",
    }
    settings = load_settings(home=home, environ=environ)
    assert rules_of(settings, "http:op").folders == (place / "data", place / "other")
    assert settings.s3_endpoints == {"s3.local:9", "x"} and rules_of(settings, "http").folders is None
    (home / "access.json").unlink()
    assert rules_of(settings, "http").folders == (place / "data", place / "other")
