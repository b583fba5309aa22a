"""The databases that functions answer from, and what is set and learned of each."""
