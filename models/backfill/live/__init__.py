"""Backfills beside a running job: what its messages say of it as a plan takes it, a plan as its order carries it."""
