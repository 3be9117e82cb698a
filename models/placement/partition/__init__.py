"""A graph of operators cut into blocks that depend on each other in one direction only."""
