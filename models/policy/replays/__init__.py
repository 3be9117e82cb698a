"""How fast replays may run beside live records: when one begins, its rate, what it costs, and relief for live ones."""
