"""How each embedded service is started and found ready: broker, Spark cluster, Airflow, MLflow."""
