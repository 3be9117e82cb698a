"""The page of a plan: the job drawn on its clusters, and why it is cut where it is."""
