"""Which jobs there are, what each waits for, and how they run, side by side."""
