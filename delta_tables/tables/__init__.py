"""One file for each table, and the list of all."""
