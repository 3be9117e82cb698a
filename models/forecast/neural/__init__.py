"""Recurrent networks: what they read, how they are trained, and how they forecast."""
