"""How tables are read: without Spark where that can be, else through it."""
