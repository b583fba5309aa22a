"""Aggregates of measures, over arrays."""
