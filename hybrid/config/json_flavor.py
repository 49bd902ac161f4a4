"""The encodings of JSON records for values that JSON has no type for, by Feldera's names."""

from enum import StrEnum


class JsonFlavor(StrEnum):
    """How a record encodes values for which JSON has no type."""

    DEFAULT = "default"
    DEBEZIUM_MYSQL = "debezium_mysql"
    DEBEZIUM_POSTGRES = "debezium_postgres"
