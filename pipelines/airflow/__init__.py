"""Airflow, used as a person uses its UI."""
