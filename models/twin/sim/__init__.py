"""The simulated job: arrivals, batches, executors; compiled."""
