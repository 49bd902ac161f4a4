"""Connectors: where a table's rows come from, in Feldera's words. History comes by them to the OFFLINE half."""
