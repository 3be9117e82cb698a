"""Approximate results of signed records on Spark: its own sketches, and samples, each with its bound."""
