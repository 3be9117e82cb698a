"""What runs together, where, and with how many executors."""
