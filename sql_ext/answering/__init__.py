"""Where an answer is worked out, what is read for it, and what its reader is told beside it."""
