"""History on a real S3 server: with credentials, and as the lineitem recipe has it, without any."""

import json

import pytest

from tests.recipes.conftest import RecipeHome
from tests.recipes.lineitems import SCHEMA, comments, lineitems
from tests.s3_server import needs_s3, s3_server

pytestmark = [
    pytest.mark.spark,
    needs_s3,
]

DDL = """CREATE TABLE items (l_orderkey INTEGER NOT NULL, l_comment VARCHAR, l_shipdate DATE, l_tax DECIMAL(15,2))
WITH ('connectors' = '[{"labels": ["s3"], "transport": {"name": "delta_table_input", "config": CONFIG}}]');"""


@pytest.mark.parametrize("anonymous", [True, False])
def test_history_on_an_object_store(tmp_path, capsys, anonymous):
    import pyarrow as pa
    from deltalake import write_deltalake

    home, rows = RecipeHome(tmp_path / "home", capsys), lineitems(50)
    with s3_server(tmp_path / "s3") as server:
        server.create_public_bucket("lake")
        for first in (0, 25):
            table = pa.Table.from_pylist(rows[first : first + 25], SCHEMA)
            write_deltalake("s3://lake/line items", table, mode="append", storage_options=server.options)
        options = {**server.endpoint, "aws_skip_signature": "true"} if anonymous else server.options
        config = {"uri": "s3://lake/line items", "mode": "snapshot", **options}
        (tmp_path / "items.sql").write_text(DDL.replace("CONFIG", json.dumps(config)))
        home.run("table", "create", "-f", str(tmp_path / "items.sql"))
        home.run("ingest", "items", "--until-caught-up")
        state = home.run("connector", "list", "items")[0]
        assert state["state"] == "COMPLETED", state
    assert sorted(row["l_comment"] for row in home.rows("select l_comment from items limit 100")) == comments(rows)
    total = home.rows("select sum(l_tax) from items")[0]["sum(l_tax)"]
    assert float(total) == pytest.approx(float(sum(row["L_TAX"] for row in rows)))
