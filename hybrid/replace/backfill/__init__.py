"""Backfills: corrections of a stretch of time that are planned, looked at, checked, and then swapped in."""
