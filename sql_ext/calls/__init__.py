"""From a declared function to one that SQL and Python call, and from a call to its rows."""
