"""A job's queries scaled by the autoscaler: their contracts, what is forecast for them, and moves to where room is."""
