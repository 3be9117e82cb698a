"""What is possible with the load known: the clairvoyant plan, and a lower bound on the cost of any policy."""
