"""How much the lake takes, on disk and in the memory of who reads it."""
