"""How a database is found, made, prepared, migrated and opened."""
