"""A twin's parameters from measurements, and how well it reproduces runs."""
