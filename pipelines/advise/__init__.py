"""What would help a job most, and what acting on it would have come to: read from a run or the lake, and told."""
