"""The pipeline on real neighbours: YARN and HDFS, brokers with ACLs, PostgreSQL, MLflow with logins, containers."""
