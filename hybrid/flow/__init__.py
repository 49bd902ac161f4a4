"""Connectors and flows: loading history, one-time and incremental flows, and the order in which they run."""
