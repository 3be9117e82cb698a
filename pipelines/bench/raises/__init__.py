"""What raises of a real job take, phase by phase, beside stock Spark's and beside what was predicted."""
