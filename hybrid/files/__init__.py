"""Files of records (JSON, CSV, Parquet): how workers share them, and reading each record with its place."""
