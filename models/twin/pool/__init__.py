"""Several simulated jobs on one pool of cores, divided by one rule or another."""
