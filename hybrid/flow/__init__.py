"""Connectors and flows: history, once-flows, and the order in which they run."""
