"""A query of many keys that moves under load, and what is killed meanwhile."""
