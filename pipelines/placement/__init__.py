"""Topologies on real clusters: blocks as Spark applications, joined by topics."""
