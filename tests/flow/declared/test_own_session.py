"""However a flow file asks for a Spark session, it gets the one that reads its files. No JVM."""

from __future__ import annotations

import pytest

from hybrid.errors import SpecError

FILE = """
from pyspark.sql import SparkSession
import dlt
{ask}
assert repr(found) == repr(spark), found
dlt.create_streaming_table("events")
@dlt.append_flow(target="events")
def new():
    return found.readStream.format("json").load("/nowhere")
"""


@pytest.mark.parametrize(
    "ask",
    [
        "found = SparkSession.builder.getOrCreate()",
        'found = SparkSession.builder.appName("a").master("x").config("spark.sql.shuffle.partitions", 8).getOrCreate()',
        "found = SparkSession.active()",
        "found = SparkSession.getActiveSession()",
    ],
)
def test_the_session_of_a_flow_file_however_it_is_asked_for(flow_home, ask: str) -> None:
    assert [flow.name for flow in flow_home.load(FILE.format(ask=ask)).declaration.flows] == ["new"]


def test_settings_that_could_change_rows_are_no_ones_to_lose(flow_home) -> None:
    ask = 'found = SparkSession.builder.config("spark.sql.session.timeZone", "Asia/Tokyo").getOrCreate()'
    with pytest.raises(SpecError, match=r"builder\.config\('spark\.sql\.session\.timeZone'"):
        flow_home.load(FILE.format(ask=ask))


def test_outside_of_flow_files_sessions_are_sparks_own(flow_home) -> None:
    flow_home.load(FILE.format(ask="found = SparkSession.active()"))
    from pyspark.sql import SparkSession

    assert isinstance(SparkSession.builder, SparkSession.Builder)
