"""Vacuum: takes away what no version within the revert window needs, of data files and of the log."""
