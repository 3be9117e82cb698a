-- Beside the database `airflow`, which the image makes by itself.
CREATE DATABASE mlflow;
