"""Synthetic workloads with their exact truth: rates, skewed keys, disorder, retractions, faults, all from one seed."""
