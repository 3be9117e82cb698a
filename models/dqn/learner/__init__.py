"""Deep Q-learning over many runs at once."""
