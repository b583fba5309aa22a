"""What functions over a sketch read, and how far."""
