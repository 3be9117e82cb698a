"""Training runs: read the lake, call models, compare, log, register, move the alias."""
