"""Blocks and operators put on nodes of several domains."""
