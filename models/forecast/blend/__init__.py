"""The production forecaster: experts that learn at every step, weighed by their errors; compiled."""
