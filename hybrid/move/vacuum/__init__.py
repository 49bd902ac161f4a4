"""Vacuum: removes data files and log entries that no version within the revert window needs."""
