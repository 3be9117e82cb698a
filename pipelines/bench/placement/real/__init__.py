"""Placements on two real clusters: as planned, and others beside them."""
