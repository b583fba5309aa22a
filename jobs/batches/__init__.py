"""What the batches of several jobs share: where their work is done, and the rows that it makes."""
