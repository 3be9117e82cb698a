"""Many operators on many nodes, followed through time."""
