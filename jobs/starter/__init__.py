"""The first configuration of a source, written after a look at its rows."""
