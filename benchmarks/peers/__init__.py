"""Comparison with other engines on the same work in the same run: one file for each engine."""
