"""What tables are, what they are called, and how rows lie in their files."""
