"""A backfill by a deadline: when it will be done, the cheapest executors that keep the deadline, and its replanning."""
