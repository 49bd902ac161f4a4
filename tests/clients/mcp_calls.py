"""What an assistant does with StarTree's MCP server; runs in its own environment, prints `[tool, answer]` lines."""

import asyncio
import json
import sys

from fastmcp import Client
from mcp_pinot.server import mcp

DOCUMENTS = json.loads(sys.argv[1])
CONFIG = json.dumps(DOCUMENTS["config"])
CALLS = [
    ("test_connection", {}),
    ("list_tables", {}),
    ("table_details", {"tableName": "orders"}),
    ("segment_list", {"tableName": "orders"}),
    ("segment_metadata_details", {"tableName": "orders"}),
    ("index_column_details", {"tableName": "orders", "segmentName": DOCUMENTS["segment"]}),
    ("tableconfig_schema_details", {"tableName": "orders"}),
    ("read_query", {"query": "SELECT customer, count(*) AS n FROM orders GROUP BY customer"}),
    ("create_schema", {"schemaJson": json.dumps(DOCUMENTS["schema"])}),
    ("create_table_config", {"tableConfigJson": CONFIG}),
    ("update_table_config", {"tableName": "events", "tableConfigJson": CONFIG}),
    ("get_schema", {"schemaName": "events"}),
    ("get_table_config", {"tableName": "events", "tableType": "OFFLINE"}),
]


async def call_all() -> None:
    async with Client(mcp) as client:
        for tool, arguments in CALLS:
            result = await client.call_tool(tool, arguments)
            text = result.content[0].text
            try:
                answer = json.loads(text)
            except ValueError:
                answer = text
            print(json.dumps([tool, answer]))


asyncio.run(call_all())
