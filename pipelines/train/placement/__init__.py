"""What the DAG plan_placement calls to train placement networks."""
