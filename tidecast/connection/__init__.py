"""Kafka for the agent: clients, security, why a broker cannot be reached, the queue in front of a producer."""
