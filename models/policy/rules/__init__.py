"""The autoscalers that others run, after their sources."""
