"""Connectors: the sources of a table's rows, as in Feldera. They load history into the OFFLINE half."""
