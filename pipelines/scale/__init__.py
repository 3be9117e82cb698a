"""The autoscaler query: metrics and forecasts in, a policy's decision out, with its reason."""
