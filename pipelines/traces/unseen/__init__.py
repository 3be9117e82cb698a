"""Loads that nothing was developed on: rebuilt as CSV files from the public packages that hold them."""
