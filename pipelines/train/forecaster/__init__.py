"""What the DAG retrain_forecaster calls."""
