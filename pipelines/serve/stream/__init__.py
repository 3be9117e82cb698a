"""Serving from topic to topic: as a server, and as a Spark query."""
