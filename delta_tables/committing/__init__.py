"""A database, and how commits to its tables are made so that none is lost."""
