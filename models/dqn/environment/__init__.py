"""Randomised jobs, loads and forecasts in the twin, one run or many at once."""
