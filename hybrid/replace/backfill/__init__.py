"""Backfills: corrections of a time range that are planned, reviewed, checked, and then swapped in."""
