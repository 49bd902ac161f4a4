"""`hybrid erase`: how conditions are given, and what stays after a look."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest

from hybrid.cli.command import Cli
from hybrid.cli.erase import _conditions, erase
from hybrid.cli.main import run
from hybrid.errors import HybridError, NotFoundError, UsageError

WHERE = "customer_id = 7"


def test_run_may_be_left_out() -> None:
    context = click.Context(erase, obj=Cli())
    for given, name in ((["orders", "--where", WHERE], "run"), (["show", "erasure-1"], "show")):
        found, _, rest = erase.resolve_command(context, given)
        assert found == name and rest == (given if name == "run" else given[1:])
    with pytest.raises(click.UsageError, match="Did you mean 'resume'"):
        erase.resolve_command(context, ["resum", "erasure-1"])


def test_conditions_of_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, subjects = tmp_path / "where", tmp_path / "subjects.json"
    file.write_text(f"{WHERE}\n")
    subjects.write_text(json.dumps({"orders": WHERE, "payments": "payer = 7"}))
    assert _conditions("orders, payments", WHERE, None) == {"orders": WHERE, "payments": WHERE}
    assert _conditions("orders", f"@{file}", None) == {"orders": WHERE}
    assert _conditions(None, None, str(subjects)) == {"orders": WHERE, "payments": "payer = 7"}
    monkeypatch.setattr("sys.stdin", io.StringIO(WHERE))
    assert _conditions("orders", "@-", None) == {"orders": WHERE}


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ((None, WHERE, None), UsageError, "Which rows of which tables"),
        (("orders", None, None), UsageError, "Which rows of which tables"),
        (("orders,", WHERE, None), UsageError, "empty name"),
        (("orders", None, "x"), UsageError, "takes neither"),
        ((None, None, "nosuch.json"), NotFoundError, "cannot be read"),
        (("orders", "@nosuch", None), NotFoundError, "cannot be read"),
    ],
)
def test_what_is_no_condition(given: tuple[Any, ...], kind: type[HybridError], words: str) -> None:
    with pytest.raises(kind, match=words):
        _conditions(*given)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "s.json: line 1, column 2: this is not JSON"),
        ("[]", "a JSON object .* is expected"),
        ('{"a": 1}', "expected an object"),
        ('{"orders": "customer_id = 7", "orders": "customer_id = 8"}', "key 'orders' is given twice"),
    ],
)
def test_a_subject_file_is_an_object_of_texts(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(UsageError, match=words):
        _conditions(None, None, str(tmp_path / "s.json"))


def prepared_server(
    monkeypatch: pytest.MonkeyPatch, is_new: bool, refusals: list[dict[str, str]]
) -> list[tuple[str, Mapping[str, Any]]]:
    """A server that finds 4 rows, on a terminal whose user declines; returns the calls that it gets."""
    asked: list[tuple[str, Mapping[str, Any]]] = []

    class Server:
        def __init__(self, *_: object) -> None:
            pass

        def call(self, verb: str, arguments: Mapping[str, Any]) -> Any:
            asked.append((verb, arguments))
            begun = {"id": "erasure-1", "created_at": "2026-11-26T10:00:00Z", "is_new": is_new}
            found = {"sentence": "4 stored rows match.", "readings": [], "refusals": refusals}
            return begun if verb == "erase_begin" else found

    def declined(*_: object, **__: object) -> None:
        asked.append(("confirm", {}))
        raise click.Abort

    monkeypatch.setattr("hybrid.cli.dispatch.server_url", lambda cli: "http://prepared")
    monkeypatch.setattr("hybrid.rpc.client.Client", Server)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("click.confirm", declined)
    return asked


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize("options", [["--dry-run"], []])
def test_a_look_ends_what_it_began_and_nothing_else(
    options: list[str], is_new: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither a dry run nor a declined question leaves a condition behind; one that was open before stays."""
    asked = prepared_server(monkeypatch, is_new, refusals=[])
    code = run(["erase", "orders", "--where", WHERE, "--dropped-copies", *options, "--home", str(tmp_path)])
    assert code == (0 if options else 130)
    asked = [call for call in asked if call[0] != "confirm"]
    assert [verb for verb, _ in asked] == ["erase_begin", "erase_run", *(["erase_discard"] if is_new else [])]
    looked = {name: value for name, value in asked[1][1].items() if name != "user"}
    given = {} if is_new else {"dropped_copies": True}
    assert looked == {"erasure": "erasure-1", "dry_run": True, **given}
    assert not is_new or asked[2][1] == {"erasure": "erasure-1", "unused": True}


@pytest.mark.parametrize("options", [["--dry-run"], []])
def test_what_is_refused_is_said_by_a_dry_run_and_before_the_question(
    options: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refusal = {"message": "'orders' was dropped before: orders@20210924.", "hint": "With --dropped-copies"}
    asked = prepared_server(monkeypatch, is_new=True, refusals=[refusal])
    assert run(["erase", "orders", "--where", WHERE, *options, "--home", str(tmp_path)]) == 4
    assert [verb for verb, _ in asked] == ["erase_begin", "erase_run", "erase_discard"]
    said = capsys.readouterr().err
    assert refusal["message"] in said and f"hint: {refusal['hint']}" in said and "Nothing was removed." in said
    assert "without --dry-run erases" not in said
