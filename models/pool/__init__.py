"""A cluster that is too small for all its jobs' peaks: who gets how many executors of it, and why."""
