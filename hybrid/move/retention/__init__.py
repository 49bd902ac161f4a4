"""Retention: segments whose rows are all older than their half keeps them are dropped whole."""
