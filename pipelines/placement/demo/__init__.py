"""The demonstration: a job planned, run on two clusters, and planned anew while it runs."""
