"""How fast the twin is."""
