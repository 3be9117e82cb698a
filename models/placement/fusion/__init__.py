"""What runs as one query: edges inside of it, or through a topic."""
