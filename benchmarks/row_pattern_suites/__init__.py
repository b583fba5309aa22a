"""Other engines' suites for MATCH_RECOGNIZE, asked of ours; nothing of the suites is here."""
