"""Pools and their division: what their jobs want, their files, their hooks, and how they stand, told to who looks."""
