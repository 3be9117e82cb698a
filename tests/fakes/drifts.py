"""A drift as the ingest reports it."""

DRIFTED = {
    "job": "orders", "time": 100.0, "found": 200.0, "kind": "adwin", "signal": "load", "before": 0.0, "after": 0.25,
    "factor": 1.284, "text": "orders: the load changed by +28%",
}  # fmt: skip
