"""The right values of what engines once gave in several ways, in queries and transforms. Corrections run the corpus."""

from __future__ import annotations

from decimal import Decimal

import pytest

from tests.expression.engines import by_query, by_transform, is_same

VALUES: dict[str, object] = {
    # texts
    "upper('straße ŉ')": "STRAẞE ŉ",
    "lower('İSTANBUL ΟΔΟΣ')": "istanbul οδοσ",
    "trim('\t a \u00a0')": "a \u00a0",
    "concat(nullif('a', 'a'), 'x')": None,
    "splitPart(',a,,b', ',', 1)": "b",
    "splitPart('a,b', ',', -1)": "b",
    "splitPart('a', ',', 1)": "null",
    "substr('hello', -3)": "llo",
    "substr('hello', -3, 4)": "ll",
    "substr('hello', 1, -2)": "el",
    "leftSubStr('hello', -1)": "",
    "substring('abc', 0, 2)": "a",
    r"regexpReplace('ab', '(a)', '<$1\1>')": "<aa>b",
    r"'a\b' like 'a\b'": True,
    r"'axb' like 'a\_b'": False,
    "fromBase64('YWI')": b"ab",
    # numbers as texts
    "cast(cast('1e300' as double) as string)": "1e+300",
    "cast(cast('10000000' as double) as string)": "10000000.0",
    "cast(cast('NaN' as double) as string)": "NaN",
    "cast(cast('-Infinity' as double) as string)": "-Infinity",
    "cast(cast('0.00000123' as big_decimal) as string)": "0.00000123",
    "cast(cast('100' as decimal(10, 0)) as string)": "100",
    "cast(cast('114.99999999999999' as double) as big_decimal)": Decimal("114.99999999999999"),
    "cast(cast('2.675' as double) as decimal(10, 2))": Decimal("2.68"),
    "cast(toTimestamp(1637490030400) as string)": "2021-11-21 10:20:30.4",
    # JSON
    """jsonPathLong('{"a": 1.0}', '$.a', -1)""": 1,
    """jsonPathLong('{"a": "1.0"}', '$.a', -1)""": 1,
    """jsonPathLong('{"a": 7.9}', '$.a', -1)""": 7,
    """jsonPathLong('{"a": true}', '$.a', -1)""": -1,
    """jsonPathLong('{"a": null}', '$.a', -1)""": -1,
    """jsonPathLong('{}', '$.a')""": None,
    """jsonPathDouble('{}', '$.a')""": None,
    """jsonExtractScalar('{"a": 7.9}', '$.a', 'INT')""": 7,
    """jsonExtractScalar('{"a": "x"}', '$.a', 'LONG', 2.5)""": 2,
    """jsonExtractScalar('{"a": 1e3}', '$.a', 'STRING')""": "1000.0",
    # times: an hour that clocks repeat, midnight that they repeat
    "dateTrunc('hour', 1698541815000, 'MILLISECONDS', 'Europe/Berlin')": 1698541200000,
    "dateTrunc('hour', 1698538215000, 'MILLISECONDS', 'Europe/Berlin')": 1698537600000,
    "dateTrunc('day', 1699158600000, 'MILLISECONDS', 'America/Havana')": 1699156800000,
    "dateTrunc('day', 1699161000000, 'MILLISECONDS', 'America/Havana')": 1699160400000,
    "dateTimeConvert(-1, '1:MILLISECONDS:EPOCH', '1:DAYS:EPOCH', '1:DAYS')": 0,
    "fromDateTime('2021-11-21T10:20:30Z', 'yyyy-MM-dd''T''HH:mm:ssZ')": 1637490030000,
    "fromDateTime('Z 20211121', 'X yyyyMMdd')": 1637452800000,
    "2.5 between nullif(1, 1) and 0": False,
}


@pytest.mark.slow
@pytest.mark.parametrize("engine", [by_query, by_transform])
def test_values(engine: object) -> None:
    found = engine(list(VALUES))  # type: ignore[operator]
    first = {text: None if values is None else values[0] for text, values in found.items()}
    assert {text: first[text] for text in VALUES if not is_same(first[text], VALUES[text])} == {}
