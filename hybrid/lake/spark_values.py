"""Settings of Spark that decide what values a statement gives, for sessions whose defaults others may have changed."""

from __future__ import annotations

from collections.abc import Mapping

# A value that does not fit is an error, times are UTC, names are found in any case, and decimals keep their digits (see
# `hybrid.lake.exact_decimals`). Workers get Arrow's plain types, in batches of a known size.
VALUE_SETTINGS: Mapping[str, str] = {
    "spark.sql.ansi.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.caseSensitive": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.storeAssignmentPolicy": "ANSI",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.execution.arrow.useLargeVarTypes": "false",
}
