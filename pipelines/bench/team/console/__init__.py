"""The console in Airflow and in a browser, with the records of many jobs."""
