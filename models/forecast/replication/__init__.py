"""The models of the replicated paper, after its text."""
