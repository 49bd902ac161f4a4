"""Retention: drops whole segments whose rows are all older than the retention time of their half."""
