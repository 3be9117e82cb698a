"""Managed jobs as plans of signed records: one function for table, stream and replay, and what it has to come to."""
