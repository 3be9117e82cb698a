"""Forecasts as a policy receives them: moved to the rate of now, calibrated to peaks."""
