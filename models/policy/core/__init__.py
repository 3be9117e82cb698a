"""What every policy is made of: what it sees, what it answers, what it carries, what executors can do."""
