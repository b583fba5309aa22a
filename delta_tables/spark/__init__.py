"""What is asked of Spark's own Java: classes, types, and values that come home from tasks."""
