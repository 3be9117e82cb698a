"""What an operator is told: metrics of every job, when they mean trouble, and which of it is new, repeated or over."""
