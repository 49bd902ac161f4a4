"""What a task does with Airflow's hook for Pinot's broker; runs in Airflow's own environment."""

import json

from airflow.providers.apache.pinot.hooks.pinot import PinotDbApiHook

hook = PinotDbApiHook()
print(
    json.dumps(
        {
            "records": [
                list(row) for row in hook.get_records("select customer, count(*) from orders group by customer")
            ],
            "first": list(hook.get_first("select max(order_id) from orders")),
            "uri": hook.get_uri(),
        }
    )
)
