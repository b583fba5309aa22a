"""What is gathered for work: rows, and what is published at a moment."""
