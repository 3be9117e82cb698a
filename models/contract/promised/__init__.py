"""The terms that follow from a job's promise: a latency limit of its records, scales and boxes."""
