"""Commands of plans, and of jobs that run in blocks."""
