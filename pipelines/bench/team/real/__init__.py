"""Three jobs with opposite peaks on one real cluster: in one pool, and with static shares of the same cores."""
