"""Row patterns over any table: MATCH_RECOGNIZE in a statement, as a function, and in Python."""
