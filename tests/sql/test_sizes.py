"""What a statement may make is known before it runs, and what it may not is refused by name."""

from __future__ import annotations

import pytest

from hybrid.errors import QueryError
from hybrid.sql.sizes import check_sizes, guard_calls
from hybrid.sql.statement import parse_statement

NESTED_SUBQUERIES = "select s || s as s from (" * 30 + "select s from t" + ")" * 30
NESTED_CTES = "with c0 as (select s from t)" + "".join(
    f", c{n} as (select s || s as s from c{n - 1})" for n in range(1, 31)
)


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("select length(replace(replace(repeat('a',10000),'a',repeat('b',10000)),'b',repeat('c',10)))", "REPLACE"),
        ("select replace(s, 'a', repeat('b', 10000)) from t", "REPLACE"),
        ("select regexp_replace(repeat(s, 10000), 'a', repeat('b', 10000), 'g') from t", "REGEXP_REPLACE"),
        ("select regexpReplace(repeat(s, 10000), '', repeat('b', 100)) from t", "REGEXPREPLACE"),
        (NESTED_SUBQUERIES, "||"),
        (NESTED_CTES + " select s from c30", "||"),
        ("with c(a) as (select repeat(s, 10000) from t) select replace(x.b, 'a', "
         "repeat('c', 99)) from c x(b)", "REPLACE"),
        ("select s || s as a, a || a as b, b || b as c, c || c as d, concat(d, d, d, d) as e, "
         "concat(e, e, e, e, e, e, e, e, e, e) as f, concat(f, f, f, f) as g from t", "CONCAT"),
        ("select list_transform(list_transform(list(s), x -> repeat(x, 10000)), y -> y "
         "|| y || y) from t", "LIST_TRANSFORM"),
        ("select array_to_string(string_split(repeat('a', 10000), ''), repeat('b', 10000))", "ARRAY_TO_STRING"),
        ("select replace(string_agg(s, ','), 'a', repeat('b', 100)) from t", "REPLACE"),
        ("select format('{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}{0}', repeat(s, 99999)) || "
         "replace(s, 'a', repeat('b', 9999)) from t",
         "REPLACE"),
        ("select [x, x] as x from (" * 30 + "select s as x from t" + ")" * 30, "A list"),
        ("select {'a': x, 'b': x} as x from (" * 30 + "select s as x from t" + ")" * 30, "A list"),
        ("select hex(" + "hex(" * 30 + "s" + ")" * 31 + " from t", "HEX"),
        ("select list_transform(l, a -> list_transform(l, b -> list_transform(l, c -> 1))) "
         "from (select string_split(s, '') as l from t)", "LIST_TRANSFORM"),
        ("with recursive r as (select s as x from t union all select replace(x, 'a', "
         "repeat('b', 9999)) from r) select x from r",
         "REPLACE"),
        ("select json_pretty(repeat('[', 10000))", "JSON_PRETTY"),
        ("select (select replace(x, 'a', repeat('b', 10000)) from (values (repeat('a', 10000))) v(x))", "REPLACE"),
        ("select replace(x, 'a', repeat('b', 10000)) from (select s as x from t union "
         "all select repeat('a', 9) from t)",
         "REPLACE"),
    ],
)  # fmt: skip
def test_a_value_without_measure_is_refused_by_name(sql: str, name: str) -> None:
    with pytest.raises(QueryError, match="may make a value of more than") as raised:
        check_sizes(parse_statement(sql).tree)
    assert raised.value.pinot_code == 700 and str(raised.value).startswith(name), str(raised.value)


@pytest.mark.parametrize(
    "sql",
    [
        "select 1",
        "select s, count(*) from t group by s",
        "select replace(s, ',', ', '), upper(s), s || '-' || s, concat(s, s, '/') from t",
        "select " + " || ".join(["s"] * 100) + " from t",
        "select repeat(s, 10000), lpad(s, 10000, 'x') from t",
        "select string_agg(s, ','), array_to_string(list(upper(s)), ', '), listagg(s) from t",
        "select list_transform(list(s), x -> upper(x) || '!') from t",
        "select regexp_replace(s, '[0-9]+', 'n'), translate(s, 'abc', 'xyz'), splitpart(s, ',', 1) from t",
        "with recursive r as (select s as p, 1 as n from t union all select p || '/' || "
        "s, n + 1 from r where n < 9) select p from r",
        "select case when s = 'a' then concat_ws(',', s, s, s) else to_json(s) end, format('{} {}', s, s) from t",
        "select " + ", ".join(f"s || '{n}' as c{n}" for n in range(200)) + " from t",
        "select json_group_array(json_object(" + ", ".join(f"'k{n}', c{n}" for n in range(20)) + ")) from t",
        pytest.param(
            "select list_contains([" + ", ".join(map(str, range(20_000))) + "], i) from t", marks=pytest.mark.slow
        ),
        pytest.param(
            "select s from t where s in (" + ", ".join(f"'value {n}'" for n in range(20_000)) + ")",
            marks=pytest.mark.slow,
        ),
        "select replace(substr(s, 0, 100), 'a', repeat('b', 1000)) from t",
        "select splitpart(splitpart(splitpart(s, ',', 0), ':', 0), '-', 0), lpad(rpad(s, 9, ' '), 12, ' ') from t",
    ],
)
def test_plain_uses_pass(sql: str) -> None:
    check_sizes(parse_statement(sql).tree)


@pytest.mark.slow
def test_many_long_values_of_one_row_are_refused() -> None:
    sql = "select " + ", ".join(f"repeat(s, 10000) as c{n}" for n in range(200)) + " from t"
    with pytest.raises(QueryError, match="for one row"):
        check_sizes(parse_statement(sql).tree)


@pytest.mark.parametrize("call", ["lpad({}, 5, 'x')", "rpad({}, 5, 'x')", "repeat({}, 1)", "splitpart({}, ',', 0)",
                                  "splitpart('a', {}, 0)", "strrpos({}, 'a')", "hammingdistance({}, 'a')",
                                  "divide({}, 2, 3)", "repeat(s, {}, 2)", "substr(s, {}, 2)",
                                  "jsonextractscalar({}, '$.a', 'STRING')", "jsonpathlong({}, '$.a')",
                                  "rounddecimal({}, 3)", "minmaxrange({})"])  # fmt: skip
def test_functions_that_repeat_their_arguments_do_not_nest_without_end(call: str) -> None:
    nested = "s"
    for _ in range(25):
        nested = call.format(nested)
    with pytest.raises(QueryError, match=r"nested too deeply|more than"):
        check_sizes(parse_statement(f"select {nested} from t").tree)


@pytest.mark.parametrize(
    ("name", "most"),
    [("levenshtein", 1000), ("damerau_levenshtein", 250), ("jaccard", 1000), ("jaro_similarity", 1000)],
)
def test_functions_of_quadratic_cost_are_bounded_by_what_columns_hold(name: str, most: int) -> None:
    tree = parse_statement(f"select {name}(s, 'abc') from t").tree
    guard_calls(tree)
    assert f"STRLEN(CAST(s AS TEXT)) > {most} THEN ERROR('A text is too long: " in tree.sql("duckdb")
    assert tree.sql("duckdb").count("ERROR") == 1, "a short constant needs no check"


def test_a_statement_without_such_functions_stays_as_it_is() -> None:
    tree = parse_statement("select s || 'a', replace(s, 'a', 'b') from t where s = 'x'").tree
    before = tree.sql()
    check_sizes(tree)
    guard_calls(tree)
    assert tree.sql() == before
