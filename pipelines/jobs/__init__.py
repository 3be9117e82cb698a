"""Managed jobs that carry load, the load generator, and the traces it replays."""
