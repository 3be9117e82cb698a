"""What the DAG retrain_agent calls."""
