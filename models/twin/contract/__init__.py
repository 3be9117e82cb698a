"""Contracts tried in a job's twin: one that is proposed from what was observed, and one beside another."""
