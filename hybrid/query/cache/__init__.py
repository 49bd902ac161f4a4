"""The serving cache: tables kept in DuckDB by the query server, fed from the Delta logs and Kafka without a JVM.

It is disposable, and never the only way to an answer: what it cannot answer at the newest revision, the files do.
"""
