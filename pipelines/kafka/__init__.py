"""Kafka: topics, clients, security; sole owner of the Kafka clients."""
