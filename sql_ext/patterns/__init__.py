"""What functions over patterns read, and how far."""
