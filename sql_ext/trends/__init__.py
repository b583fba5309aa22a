"""What functions over trends read: vertices."""
