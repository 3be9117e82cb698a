"""Commands about forecasters: what they are worth, how they adapt, where they drift, which are registered."""
