import contextlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hybrid.config.overrides import apply_set, apply_sets, load_json, parse_document, pointers
from hybrid.errors import HybridError, NotFoundError, SpecError, UsageError

DOC: dict[str, Any] = {
    "a": {"b": 1, "c.d": "x", "e/f~g": 2},
    "list": [{"name": "n", "v": 1}, {"labels": ["l.1", "l.2"], "v": 2}, 3],
}


@pytest.mark.parametrize(
    ("assignment", "pointer", "value"),
    [
        ("/a/b=2", ["a", "b"], 2),
        ("/a/new=true", ["a", "new"], True),
        ('/a/b="2"', ["a", "b"], "2"),
        ("/a/b=localhost:9092", ["a", "b"], "localhost:9092"),
        ("/a/b=x=y", ["a", "b"], "x=y"),
        ("/a/b=", ["a", "b"], ""),
        ("/a/b=NaN", ["a", "b"], "NaN"),
        ("/a/e~1f~0g=5", ["a", "e/f~g"], 5),
        ('/a={"z": [1]}', ["a"], {"z": [1]}),
        ("c.d=y", ["a", "c.d"], "y"),
        ("b=null", ["a", "b"], None),
        ("/list/2=4", ["list", 2], 4),
        ("/list/0/v=9", ["list", 0, "v"], 9),
        ("/list/n/v=9", ["list", 0, "v"], 9),
        ("/list/l.2/v=9", ["list", 1, "v"], 9),
    ],
)
def test_sets_one_value(assignment: str, pointer: list[Any], value: object) -> None:
    changed: Any = apply_set(DOC, assignment, "f")
    for part in pointer:
        changed = changed[part]
    assert changed == value and type(changed) is type(value)
    assert DOC["a"]["b"] == 1, "the document itself stays"


@pytest.mark.parametrize(
    ("assignment", "part"),
    [
        ("v=1", "stands in 2 places: /list/0/v, /list/1/v"),
        ("bb=1", "no such key"),
        ("c.e=1", "Did you mean 'c.d'?"),
        ("/x/y=1", "nothing is there to set"),
        ("/a/b/z=1", "nothing is there to set"),
        ("/list/9=1", "nothing is there to set"),
        ("/list/zz/v=1", "nothing is there to set"),
        ("/a/b=1e999", "--set /a/b: 1e999 is beyond the largest number"),
        ('b=[1, {"x": -1.5e400}]', "--set b: -1.5e400 is beyond the largest number"),
    ],
)
def test_errors_list_candidates(assignment: str, part: str) -> None:
    with pytest.raises(SpecError) as caught:
        apply_set(DOC, assignment, "f")
    assert part in str(caught.value)


@pytest.mark.parametrize("assignment", ["a", "", "=1"])
def test_wrong_words(assignment: str) -> None:
    with pytest.raises(UsageError):
        apply_set(DOC, assignment, "f")


def test_several_documents() -> None:
    documents: list[tuple[dict[str, object], str]] = [({"s": {"t": 1, "r": 1}}, "r"), ({"s": {"t": 1}, "q": 5}, "o")]
    assert apply_sets(documents, ["/s/t=2", "r=3", "q=6"]) == [
        ({"s": {"t": 2, "r": 3}}, "r"),
        ({"s": {"t": 2}, "q": 6}, "o"),
    ]
    with pytest.raises(SpecError, match="could go into each of r, o"):
        apply_sets(documents, ["/s/new=1"])
    with pytest.raises(SpecError, match=r"/s/t \(r\), /s/t \(o\)"):
        apply_sets(documents, ["t=1"])


def test_loads_json(tmp_path: Path) -> None:
    file = tmp_path / "t.json"
    file.write_text('\ufeff{"a": "ä"}', encoding="utf-8")
    assert load_json(file) == {"a": "ä"}
    with pytest.raises(NotFoundError, match="does not exist"):
        load_json(tmp_path / "no.json")
    with pytest.raises(SpecError, match="cannot be read"):
        load_json(tmp_path)
    file.write_bytes(b"{\xff}")
    with pytest.raises(SpecError, match="not UTF-8"):
        load_json(file)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('{"a": 1,\n "b" 2}', "f: line 2, column 6: this is not JSON"),
        ('{"a": 1,\n "b": {"c": 1,\n "c": 2}}', "key 'c' is given twice in one object (it is on lines 2, 3)"),
        ("[1]", "a JSON object {...} is expected"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": [-1e999]}', "f: this cannot be read: -1e999 is beyond the largest number"),
        ("[" * 100_000, "nests deeper"),
        ("", "line 1, column 1"),
    ],
)
def test_broken_json_names_the_place(text: str, part: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_document(text, "f")
    assert part in str(caught.value)


@pytest.mark.parametrize("doc", [{}, {"metadata": None}, {"metadata": {}}, {"metadata": {"customConfigs": None}}])
def test_free_keys_are_added_where_their_objects_are_missing_or_null(doc: dict[str, Any]) -> None:
    assert apply_set(doc, "/metadata/customConfigs/x=1", "f") == {"metadata": {"customConfigs": {"x": 1}}}


@pytest.mark.parametrize(
    ("doc", "part"),
    [
        ({"metadata": []}, "--set /metadata/customConfigs/x: 'metadata' is [], no object"),
        ({"metadata": {"customConfigs": "a"}}, "'customConfigs' is 'a', no object"),
    ],
)
def test_free_keys_need_objects(doc: dict[str, Any], part: str) -> None:
    with pytest.raises(SpecError) as caught:
        apply_set(doc, "/metadata/customConfigs/x=1", "f")
    assert part in str(caught.value)


@given(st.text())
def test_any_assignment_is_done_or_an_error_of_ours(assignment: str) -> None:
    with contextlib.suppress(HybridError):
        apply_set(DOC, assignment, "f")


def test_every_pointer_can_be_set() -> None:
    for pointer in pointers(DOC):
        changed = apply_set(DOC, f"{pointer}=7", "f")
        assert changed != DOC
