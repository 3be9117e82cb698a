"""What a run shows of the backfill in its live day."""
