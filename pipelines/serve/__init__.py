"""Forecasts out: follow metrics, step the champion, publish."""
