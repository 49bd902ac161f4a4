"""Purges: hidden rows are removed from every place that still holds them, and a second reading proves it."""
