"""How Spark's JVM starts: its settings, packages and classes, and what it says meanwhile."""
