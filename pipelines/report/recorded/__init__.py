"""What a run left behind: its topics, its query's progress, Spark's event log."""
