"""Spark: sessions, jars, Java, the class archive."""
