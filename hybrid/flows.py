"""What a flow file imports: `from hybrid import flows`. Run it with `hybrid flow run FILE`.

flows.create_streaming_table(name="events", table_properties={"hybrid.timeColumn": "ts"})

@flows.append_flow(target="events")
def new_files():
    return flows.read_files_stream("/data/events", format="json").load()
"""

from hybrid.flow.declared.python_face import append_flow, conf, create_streaming_table, spark, table
from hybrid.flow.declared.sources import read_files, read_files_stream

__all__ = ["append_flow", "conf", "create_streaming_table", "read_files", "read_files_stream", "spark", "table"]
