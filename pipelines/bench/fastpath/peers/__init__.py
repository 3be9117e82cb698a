"""What people would use instead of the fast path."""
