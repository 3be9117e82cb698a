"""Checkpoints of streaming queries as files: what is damaged of one, and how its query goes on all the same."""
