"""How rows are written, changed and removed."""
