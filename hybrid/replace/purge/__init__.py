"""Purges: rows that a delete has hidden go from every place that still has them, and a second reading proves it."""
