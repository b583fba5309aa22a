"""How rows and errors read in a terminal."""
