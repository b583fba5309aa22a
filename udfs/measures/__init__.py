"""Measures: what MEASURES asks of the rows, or the events, that a match has; of row patterns and of patterns."""
