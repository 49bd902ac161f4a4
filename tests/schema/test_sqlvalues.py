"""Which values the types of a DDL accept."""

from decimal import Decimal

import pytest

from hybrid.records.fields import UNFIT
from hybrid.schema.sqlvalues import sql_column
from hybrid.schema.types import DataType

NINES = "99999999999999999999.999999999999999999"


@pytest.mark.parametrize(
    ("sql_type", "written"),
    [
        ("DECIMAL(38,18)", "12345678901.5"), ("DECIMAL(38,18)", NINES), ("DECIMAL(38,18)", f"-{NINES}"),
        ("DECIMAL(20,18)", "12.000000000000000001"), ("DECIMAL(30,10)", "12345678901234567890.1234567891"),
        ("DECIMAL(38)", "99999999999999999999"), ("DECIMAL(38,38)", "0.000000000000000001"),
    ],
)  # fmt: skip
def test_a_decimal_of_up_to_38_digits(sql_type: str, written: str) -> None:
    assert sql_column(sql_type, DataType.BIG_DECIMAL).convert(written) == Decimal(written)


@pytest.mark.parametrize(
    ("sql_type", "written"),
    [
        ("DECIMAL(38)", "12345678901.5"), ("DECIMAL(30,10)", "12345678901234567890.12345678912"),
        ("DECIMAL(20,18)", "100"), ("DECIMAL(38,38)", "1"), ("DECIMAL(38,17)", "0.000000000000000001"),
    ],
)  # fmt: skip
def test_a_decimal_with_too_many_digits(sql_type: str, written: str) -> None:
    with pytest.raises(UNFIT):
        sql_column(sql_type, DataType.BIG_DECIMAL).convert(written)
