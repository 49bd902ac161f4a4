"""Merges the segments of closed buckets of OFFLINE into few: Pinot's MergeRollupTask."""
