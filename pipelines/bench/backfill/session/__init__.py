"""A session for real: the job that is measured, its live records, its processes, and what they leave."""
