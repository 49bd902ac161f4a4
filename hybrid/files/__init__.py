"""Files of records (JSON, CSV, Parquet, Avro, ORC): how workers share them, and reading each record with its place."""
