"""What runs when: Airflow DAGs, each task one call."""
