"""The Query page's functions without a browser: lexemes and completion as in the shell, statements, copies, state."""

from __future__ import annotations

import ast
import json
import subprocess
from typing import Any

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from hybrid.cli.shell.completion import ShellCompleter
from hybrid.cli.shell.lexer import lexemes
from hybrid.cli.shell.names import CatalogNames
from hybrid.serve.console.query_page import vocabulary
from tests.console.scripts import HERE, NEEDS_NODE, call, script

pytestmark = [pytest.mark.process, NEEDS_NODE]
TEXT, COMPLETION, COPYING, STATE, VALUES, PLAN = (
    script(f"query/{name}.js") for name in ("text", "completion", "copying", "state", "values", "plan")
)
TABLES: dict[str, tuple[list[str], list[str]]] = {
    "orders": (["REALTIME", "OFFLINE"], ["order_id", "customer", "order", "unit price"]),
    "rides": (["REALTIME"], ["ride_id", "city", "customer"]),
}


TEXTS = [
    "select * from orders",
    "select 'a''b', E'c\\'d', \"x y\" -- rest\n/* a /* b */ c */ 1.5e-3 $docId",
    "select 'open",
    'select "open',
    "/* open /* nested */",
    "{# note #} select 1 {# open",
    "e'\\",
    "größe + x1 :: 2x ≤ 'é😀'",
    "",
    "''''",
    "a.b(c)[1];;",
]


def test_lexemes_are_those_of_the_shell() -> None:
    for text, found in zip(TEXTS, call(TEXT, *(["lexemes", text] for text in TEXTS)), strict=True):
        expected = [(part.kind.name.lower(), part.text, part.closed) for part in lexemes(text)]
        assert [(part["kind"], part["text"], part["isClosed"]) for part in found] == expected, text


def test_the_statement_under_the_cursor() -> None:
    text = "set timeoutMs = 5;\nselect 1;\n-- two\nselect ';' from b ; reset all; select 3"
    calls = [["statementAt", text, text.index(mark)] for mark in ("timeout", "select 1", "two", "from b", "3")]
    behind = text.index("\n-- two")
    found = call(
        TEXT, *calls, ["statementAt", text, behind], ["statementAt", " ; -- x", 1], ["statementsOf", "a; set x = 1"]
    )
    assert [each["text"] for each in found[:6]] == [
        "select 1", "select 1", "-- two\nselect ';' from b", "-- two\nselect ';' from b", "select 3", "select 1",
    ]  # fmt: skip
    assert found[0]["settings"] == ["set timeoutMs = 5"] and found[4]["settings"] == []
    assert text[found[2]["from"] : found[2]["to"]] == found[2]["text"]
    assert found[6] is None
    assert [(part["text"], part["settings"]) for part in found[7]] == [("a", ["set x = 1"])]


def test_settings_behind_the_last_statement_are_its_own() -> None:
    texts = [
        "set x = 1; a; set X = 2; set y = 3",
        "a; set x = 1; b; set y = 2",
        "set x = 1; a; reset x; set y = 2; reset y",
        "set x = 1; a; reset all",
        "set x = 1",
    ]
    found = call(TEXT, *(["statementsOf", text] for text in texts))
    assert [[(part["text"], part["settings"]) for part in parts] for parts in found] == [
        [("a", ["set X = 2", "set y = 3"])],
        [("a", []), ("b", ["set x = 1", "set y = 2"])],
        [("a", ["set x = 1"])],
        [("a", ["set x = 1"])],
        [],
    ]


def test_segments_of_now_are_not_those_of_another_moment() -> None:
    """The plan view draws segments over time only where the fetched ones are those of the plan."""
    table = {"halves": [{"half": "OFFLINE", "segments": ["a"]}, {"half": "REALTIME", "segments": []}]}
    segments = [{"half": "OFFLINE", "name": "a"}, {"half": "OFFLINE", "name": "b"}, {"half": "REALTIME", "name": "c"}]
    runs = [
        {"sql": "select asOf from t", "asOf": "", "plan": ""},
        {"sql": "select 1", "asOf": "2021-09-24T07:00:00Z", "plan": ""},
        {"sql": "select 1\n;\nSET plan = 'p'", "asOf": "", "plan": "p"},
        {"sql": "select 1\n;\nset asof = '2021'", "asOf": "", "plan": ""},
    ]
    calls = [["hasSegmentsOf", table, segments], ["hasSegmentsOf", table, segments[1:]]]
    found = call(PLAN, *calls, *(["isOfAnotherState", run] for run in runs))
    assert found == [True, False, False, True, True, True]


def test_what_is_sent_keeps_the_positions_of_errors() -> None:
    statement = {"text": "select 1", "settings": ["set x = 2"]}
    assert call(TEXT, ["sentStatement", statement, "it's"]) == ["select 1\n;\nset x = 2\n;\nSET plan = 'it''s'"]


def test_the_place_of_an_error() -> None:
    sql = "select '😀', nope\nfrom ordres where x = 'nope'"
    cases = [
        ("There is a word too much at line 1, column 13, near 'nope'.", "nope"),
        ("Column 'NOPE' does not exist. Did you mean 'x'?", "nope"),
        ("Table 'ordres' does not exist.", "ordres"),
        ("It ends too early at line 2, column 28, at the end.", "'"),
        ("It is at line 9, column 1.", None),
        ("The query was cancelled.", None),
    ]
    found = call(TEXT, *(["errorRange", message, sql] for message, _ in cases))
    utf16 = sql.encode("utf-16-le")
    for (message, expected), place in zip(cases, found, strict=True):
        marked = None if place is None else utf16[2 * place[0] : 2 * place[1]].decode("utf-16-le")
        assert marked == expected, message


def test_completion_offers_what_the_shell_offers() -> None:
    texts = [
        "select * from |", "select * from or|", "select cust| from orders", "select | from orders_OFFLINE",
        "select o.| from orders o", "select * from orders, |", "select * from rides join o|", "set p|",
        'select "un| from orders', "select 'or|", "select 1 -- or|", "select $p|", "select datet|", "SELECT DATET|",
        "select a from orders; select ci| from rides", "select orders.o| from orders", "select sum(o|, 1) from orders",
    ]  # fmt: skip
    driver = (HERE / "completion_driver.mjs").as_uri()
    calls = [["offers", COMPLETION, TABLES, dict(vocabulary()), text, True] for text in texts]
    completer = ShellCompleter(CatalogNames(_ask))
    for text, found in zip(texts, call(driver, *calls), strict=True):
        place = text.index("|")
        document = Document(text.replace("|", ""), place)
        expected = [each.text for each in completer.get_completions(document, CompleteEvent())]
        assert {*(found or [])} == {*expected}, text


def test_completion_without_an_answer_of_the_server() -> None:
    driver = (HERE / "completion_driver.mjs").as_uri()
    texts = ("select * from |", "select cou|")
    calls = [["offers", COMPLETION, None, dict(vocabulary()), text, True] for text in texts]
    tables, functions = call(driver, *calls)
    assert tables is None and "count(" in functions


def _ask(verb: str, **arguments: str) -> object:
    if verb == "table_list":
        return [{"name": name, "halves": halves} for name, (halves, _) in TABLES.items()]
    return {"columns": dict.fromkeys(TABLES[arguments["table"]][1], "STRING")}


HOSTILE = ["select 'it''s $HOME `id` \\ \"x\"'\n-- é😀", 'select """', 'select 1\n"', "-- begins\nselect 1", "a\\"]


def test_copies_say_the_same_to_every_client() -> None:
    requests = [{"origin": "http://127.0.0.1:9000", "sql": sql, "asOf": "t[OFFLINE=1 x='y']"} for sql in HOSTILE]
    names = ("asCurl", "asCommandLine", "asPython")
    found = call(COPYING, *([name, request] for request in requests for name in names))
    for place, request in enumerate(requests):
        curl, command_line, python = found[3 * place : 3 * place + 3]
        moment = request["asOf"].replace("'", "''")
        body = _words_of(curl)[-1]
        assert json.loads(body) == {"sql": f"{request['sql']}\n;\nSET asOf = '{moment}'"}
        assert _words_of(command_line)[-3:] == ["--as-of", request["asOf"], request["sql"]]
        calls = [node for node in ast.walk(ast.parse(python)) if isinstance(node, ast.Call)]
        query = next(node for node in calls if node.args and node.keywords)
        assert ast.literal_eval(query.args[0]) == request["sql"]
        assert ast.literal_eval(query.keywords[0].value) == request["asOf"]
    secured = call(COPYING, ["asCurl", {**requests[0], "hasAccounts": True}])[0]
    assert "$HYBRID_TOKEN" in secured and "HYBRID_TOKEN" not in found[0]


def _words_of(command: str) -> list[str]:
    """The words that a shell makes of a command."""
    shell = f"show() {{ printf '%s\\0' \"$@\"; }}; show {command}"
    shown = subprocess.run(["sh", "-c", shell], capture_output=True, timeout=20, check=True).stdout
    return shown.decode().split("\0")[:-1]


def test_addresses_that_would_be_too_long() -> None:
    short, long = {"sql": "select 1", "asOf": "", "plan": ""}, {"sql": "x" * 9000, "asOf": "", "plan": ""}
    found = call(
        COPYING, ["pageAddress", short], ["pageAddress", long], ["downloadAddress", short, "csv"],
        ["downloadAddress", long, "csv"], ["pageAddress", {**short, "sql": ""}],
    )  # fmt: skip
    assert found == ["/ui/query?sql=select+1", None, "/query/export?sql=select+1&format=csv", None, "/ui/query"]


def test_tabs_are_bounded_and_kept() -> None:
    driver = (HERE / "state_driver.mjs").as_uri()
    damaged = json.dumps({"list": [{"id": "a", "text": 5}, {"id": "b", "text": "x", "view": "no"}], "active": "z"})
    story, broken, closed, empty, reused = call(
        driver, ["tabsStory", STATE], ["tabsOf", STATE, damaged, False], ["tabsOf", STATE, None, True],
        ["tabsOf", STATE, "no json", False], ["reusedTab", STATE],
    )  # fmt: skip
    assert story["count"] == story["kept"] == 20 and story["first"] == ["select 1", "select 2"]
    assert story["active"] == "select 18" and story["closed"] == [""]
    assert story["refused"] == 11, "without room nothing is overwritten"
    assert story["replaced"] == {"text": "a link", "count": 20, "keepsId": False}
    assert broken == [["x", "table"], ["select 1", "table"]]
    assert closed == empty == [["select 1", "table"]]
    assert reused == {"count": 1, "keepsId": False}, "what ran in an emptied tab is not shown for its next text"


def test_the_history_is_bounded() -> None:
    story = call((HERE / "state_driver.mjs").as_uri(), ["historyStory", STATE, 300])[0]
    assert story == {"newest": "select 5", "count": 200, "fives": 1, "left": 0, "added": [True, False]}


def test_values_as_text() -> None:
    cases: list[tuple[list[Any], Any]] = [
        (["textOf", 1, "DOUBLE"], "1.0"),
        (["textOf", 1, "LONG"], "1"),
        (["textOf", [1, None], "LONG_ARRAY"], "[1,null]"),
        (["textOf", False, "BOOLEAN"], "false"),
        (["axisOf", "TIMESTAMP", ["2021-09-24 07:00:00.0", None]], "time"),
        (["axisOf", "LONG", [1_632_463_351_000]], "time"),
        (["axisOf", "LONG", [5]], "number"),
        (["axisOf", "STRING", ["a"]], "category"),
        (["axisOf", "STRING", []], "category"),
        (["secondsOf", "1970-01-01 00:00:01.5"], 1.5),
        (["secondsOf", "1970-01-02"], 86400),
        (["secondsOf", 2000], 2),
        (["numberOf", "12.50"], 12.5),
        (["numberOf", "NaN"], None),
        (["counted", 1, "row"], "1 row"),
        (["duration", 61_000], "1 min 1 s"),
        (["duration", 119_600], "2 min 0 s"),
        (["duration", 59_960], "1 min 0 s"),
        (["duration", 59_940], "59.9 s"),
        (["duration", 9_996], "10.0 s"),
        (["duration", 1_234], "1.23 s"),
        (["duration", 999.6], "1.00 s"),
    ]
    found = call(VALUES, *(given for given, _ in cases))
    assert found == [expected for _, expected in cases]
