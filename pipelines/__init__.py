"""The shell: every line that touches the outside world: Spark, Kafka, MLflow, files, processes, clocks."""
