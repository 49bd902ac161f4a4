"""A hybrid realtime/offline table manager: Kafka, Spark, Delta Lake and DuckDB behind one table."""
