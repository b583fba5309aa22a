"""How every object stands, and the configuration that a database was written with."""
