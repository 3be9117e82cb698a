"""Policies compared in the twin: scenarios, contenders, tuning, evaluation, results."""
