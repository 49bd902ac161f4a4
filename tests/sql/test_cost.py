"""Only statements whose rows all cost the same run where others wait for them."""

from __future__ import annotations

import pytest

from hybrid.sql.cost import has_constant_cost
from hybrid.sql.statement import parse_statement


@pytest.mark.parametrize(
    "sql",
    [
        "select count(*) from orders where customer = 'a' and amount > 5",
        "select customer, sum(amount * 2) from orders where ts between 1 and 5 group by 1 order by 2 desc limit 3",
        "select max(cast(amount as bigint)), date_trunc('day', ts) from orders group by 2",
        "select * from orders where order_id in (1, 2, 3)",
    ],
)
def test_what_costs_the_same_for_each_row_is_known(sql: str) -> None:
    assert has_constant_cost(parse_statement(sql).tree)


@pytest.mark.parametrize(
    "sql",
    [
        f"select max({call}) from orders where order_id > 0"
        for call in (
            "levenshtein(customer, customer)",
            "damerau_levenshtein(customer, customer)",
            "jaccard(customer, customer)",
            "length(repeat(customer, 5000))",
            "lpad(customer, 5000, 'x')",
            "replace(customer, 'a', 'b')",
            "regexp_replace(customer, 'a', 'b')",
            "regexp_like(customer, 'a*b*c*')",
            "customer || customer",
            "concat(customer, customer, '-')",
            "customer like '%a%b%c%'",
            "cast(amount as varchar)",
            "list_sum([amount])",
            "json_extract_scalar(customer, '$.a', 'STRING')",
            "sha256(customer)",
        )
    ]
    + ["select string_agg(customer, ',') from orders", "select customer from orders where customer similar to 'a*'"],
)
def test_what_depends_on_the_length_of_a_text_is_not(sql: str) -> None:
    assert not has_constant_cost(parse_statement(sql).tree)
