"""A batch of a job, from its intent to its publication, and what becomes of older ones."""
